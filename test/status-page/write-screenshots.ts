/**
 * Takes the pictures of docs/inspect.md: the demonstration online, offline and after a reboot
 * without a link. Run it where there is a browser, and look at them.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
  const take = async (name: string, state: RegExp, options = {}): Promise<void> => {
    const page = await browser.open(address, options)
    await page.shows('#state', state)
    await page.shows('[data-section=boot]', /● The node and its \d+ pods would come back/)
    await page.shows('[data-section=collections]', /pods/)
    await page.shows('[data-section=served]', state.test('Offline') ? /cache 200/ : /cloud 200/)
    writeFileSync(join(folder, `${name}.png`), await page.screenshot())
    await page.close()
  }
  await take('online', /Online/, { width: 1120, height: 740 })
  demo.stdin.write('u\n')
  await take('offline', /Offline/, { width: 1120, height: 700, dark: true })
  await take('narrow', /Offline/, { width: 390, height: 844 })
  demo.stdin.write('b\n')
  await printed(/The node has (rebooted)/)
  await take('after-a-reboot', /Offline/, { width: 1120, height: 740 })
} finally {
  for (const act of stack) await act()
}
