/** docs/troubleshooting.md, held to what a hub says of itself with each of its faults planted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import t from 'tap'
import { inspect } from '../../src/cli/inspect/inspect.ts'
import { Browser, noBrowser } from '../kit/browser.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { noDisk } from '../kit/disk.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { rootFolder, type TestHub } from '../kit/hub.ts'
import { plant } from './planted-faults.ts'
import { portOf } from '../kit/wire/listening.ts'

const page = readFileSync('docs/troubleshooting.md', 'utf8')

/** What the page says is seen of each fault: `…` is any text, and runs of spaces are alike. */
const signs = new Map(
  [...page.matchAll(/^\| `(?<line>[^`]+)` +\| (?<fault>[^|]*?) +\|/gm)]
    .map(({ groups: { line = '', fault = '' } = {} }) => [fault, line] as const)
    .filter(([fault]) => fault !== ''),
)

const patternOf = (line: string): RegExp =>
  new RegExp(
    line
      .split('…')
      .map((part) => RegExp.escape(part.trim()).replaceAll(/(?:\\x20)+/g, '\\s+'))
      .join('.*'),
  )

/**
 * The longest text between what varies, in which a line and the status page are alike, but that the
 * page may say more between two words.
 */
const wordsOf = (line: string): RegExp => {
  const parts = line
    .split(/:? ?…/)
    .map((part) => part.replace(/^\[ \]\w+ |^\[-\]\w+ {2,}/, '').trim())
  const [longest = ''] = parts.toSorted((a, b) => b.length - a.length)
  return new RegExp(
    longest
      .split(' ')
      .map((word) => RegExp.escape(word))
      .join('.*'),
    'i',
  )
}

const browser = noBrowser === false ? await Browser.start(t) : undefined

async function statusOf(hub: TestHub): Promise<string> {
  let out = ''
  const flags = [`--serve-port=${hub.hub.opsPort}`, `--token-file=${hub.inspectTokenFile}`]
  await inspect.run(['status', ...flags], {
    out: (text) => (out += text),
    err: (text) => t.fail(text),
  })
  return out
}

void t.test('each fault that the page names can be planted', async (t) => {
  t.strictSame(new Set([...Object.keys(plant), 'taken port']), new Set(signs.keys()))
})

for (const [fault, planted] of Object.entries(plant)) {
  const skip = fault === 'full disk' && noDisk()
  void t.test(`inspect status and the status page lead to: ${fault}`, { skip }, async (t) => {
    const hub = await planted(t)
    const sign = patternOf(signs.get(fault) ?? 'no sign')
    t.match(await statusOf(hub), sign)
    if (browser === undefined) return
    const token = readFileSync(hub.inspectTokenFile, 'utf8')
    const shown = await browser.open(`http://127.0.0.1:${hub.hub.opsPort}/#token=${token}`)
    await shown.shows('#log', /Log/)
    // Apart from its log, which no operator should have to search.
    await shown.evaluate(`document.querySelector('[data-section=log]').remove()`)
    await shown.shows('body', wordsOf(signs.get(fault) ?? 'no sign'))
  })
}

void t.test('a hub with one fault shows no sign of another', async (t) => {
  const hub = await plant['not bootable']?.(t)
  const status = hub ? await statusOf(hub) : ''
  for (const [fault, line] of signs)
    if (fault !== 'not bootable') t.notMatch(status, patternOf(line), fault)
})

void t.test('a hub whose port is taken ends with the line that the page has', async (t) => {
  const port = await portOf(t, createServer())
  const [command, args] = plainNode(
    nodehubProgram,
    'start',
    '--server-addr=https://127.0.0.1:9',
    '--bootstrap-mode=anonymous',
    '--enable-dummy-if=false',
    `--root-dir=${rootFolder(t)}`,
    `--proxy-port=${port}`,
    '--serve-port=0',
    '--proxy-secure-port=0',
  )
  const hub = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => hub.kill('SIGKILL'))
  let log = ''
  hub.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  const [code] = (await once(hub, 'close')) as [number]
  t.equal(code, 1)
  t.match(log, patternOf(signs.get('taken port') ?? 'no sign'))
})
