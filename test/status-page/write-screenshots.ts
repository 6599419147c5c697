/**
 * Takes the pictures of docs/inspect.md: the demonstration in its second outage, wide and on a
 * phone. Run it where there is a browser, with the minutes between two turns of the link (default:
 * one), and look at them.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Browser } from '../kit/browser.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { until } from '../kit/until.ts'

const folder = join(import.meta.dirname, '..', '..', 'docs', 'status-page')
const stack: (() => unknown)[] = []
const parts = { teardown: (act: () => unknown): void => void stack.unshift(act) }
try {
  const ports = ['--proxy-port=0', '--serve-port=0', '--proxy-secure-port=0']
  const demo = spawn(...plainNode('src/main.ts', 'demo', ...ports), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  parts.teardown(() => demo.kill())
  let said = ''
  demo.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const printed = (pattern: RegExp): Promise<string> =>
    until(`${pattern}`, () => Promise.resolve(pattern.exec(said)?.[1]))
  const address = await printed(/Status page +(http\S+)/)
  const browser = await Browser.start(parts)
  const take = async (name: string, options: object): Promise<void> => {
    const page = await browser.open(address, options)
    await page.shows('#state', /Offline/)
    await page.shows('[data-section=boot]', /● The node and its \d+ pods would come back/)
    await page.shows('[data-section=served]', /cache 200/)
    writeFileSync(join(folder, `${name}.webp`), await page.screenshot())
    await page.close()
  }
  for (const key of ['u', 'p', 'u']) {
    await setTimeout(Number(process.argv[2] ?? 1) * 60_000)
    demo.stdin.write(`${key}\n`)
  }
  await take('offline', { width: 1120, height: 800 })
  await take('narrow', { width: 390, height: 844, dark: true })
} finally {
  for (const act of stack) await act()
}
