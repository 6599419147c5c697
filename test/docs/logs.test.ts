/** docs/logs.md against the log calls of the hub. */
import t from 'tap'
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor, type Argument } from 'oxc-parser'
import { findBinaries } from '../kit/cluster/binaries.ts'
import { rowsUnder } from '../tables.ts'

interface LoggedLine {
  readonly at: string
  readonly level: string
  /** `…` for each part that is known only when it is logged. */
  readonly message: string
}

/** The text of a literal or template; `undefined` for other expressions. */
function textOf(argument: Argument | undefined): string | undefined {
  if (argument?.type === 'Literal' && typeof argument.value === 'string') return argument.value
  if (argument?.type !== 'TemplateLiteral') return undefined
  return argument.quasis.map(({ value }) => value.cooked ?? '').join('…')
}

/** Each call of a log with a literal level and message. */
function linesOf(path: string): LoggedLine[] {
  const lines: LoggedLine[] = []
  const source = readFileSync(path, 'utf8')
  new Visitor({
    CallExpression({ callee, arguments: given }) {
      if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return
      const { name: level } = callee.property
      if (!/(?:^|\.|#)log$/.test(source.slice(callee.object.start, callee.object.end))) return
      const message = textOf(given[0]) ?? textOf(given[1])
      if (message !== undefined) lines.push({ at: path, level, message })
    },
  }).visit(parseSync(path, source).program)
  return lines
}

/** Those of `nodehub start`; `nodehub cluster` has a log of its own. */
const logged = globSync(['src/hub/**/*.ts', 'src/cli/{start,supervise,log,dump}.ts']).flatMap(
  linesOf,
)

const documented = rowsUnder(readFileSync('docs/logs.md', 'utf8'), '## Lines to match on').map(
  ([level = '', message = '']) => ({
    level: level.replaceAll('`', ''),
    message: message.replaceAll('`', ''),
  }),
)

const quoted = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)

/** Whether the line is the one of the row, where `…` of the row stands for any text. */
const isIn = (row: { readonly level: string; readonly message: string }, line: LoggedLine) =>
  row.level === line.level &&
  new RegExp(`^${row.message.split('…').map(quoted).join('.*')}$`).test(line.message)

void t.test('every documented line is logged, at its level', async (t) => {
  t.ok(documented.length > 30)
  for (const row of documented)
    t.ok(
      logged.some((line) => isIn(row, line)),
      `${row.level}: ${row.message}`,
    )
})

void t.test('every line for which an operator has to act is documented', async (t) => {
  const acute = logged.filter(({ level }) => level === 'error' || level === 'fatal')
  t.ok(acute.length > 20)
  for (const line of acute)
    t.ok(
      documented.some((row) => isIn(row, line)),
      `${line.at}: ${line.level}: ${line.message}`,
    )
})

const found = findBinaries(['bash', 'jq'])

const linesOfALog = [
  'Starting nodehub.service...',
  'nodehub start: invalid arguments:',
  '  --lb-mode: there is no mode "none"',
  '42',
  '{"level":"info","msg":"ready"}',
  '{"level":"warn","msg":"offline: answering from the cache"}',
  '{"level":"error","msg":"the store failed"}',
  'Started nodehub.service.',
]

void t.test(
  'the lines for jq take a log with lines of plain text',
  { skip: 'missing' in found && found.missing },
  async (t) => {
    const folder = join(t.testdir(), 'kube-system_nodehub-edge-1_1', 'nodehub')
    mkdirSync(folder, { recursive: true })
    const inPod = linesOfALog.map((line) => `2026-01-01T10:00:00.0Z stderr F ${line}\n`)
    writeFileSync(join(folder, '0.log'), inPod.join(''))
    const journal = join(folder, 'journal')
    writeFileSync(journal, linesOfALog.map((line) => `${line}\n`).join(''))
    const commands = readFileSync('docs/logs.md', 'utf8').match(/^.* \| jq .*$/gm) ?? []
    const printed = commands.map((line) => {
      const here = line.replace('/var/log/pods', t.testdirName)
      const command = `set -eo pipefail; journalctl() { cat ${journal}; }; ${here}`
      return execFileSync('bash', ['-c', command], { encoding: 'utf8' }).trimEnd().split('\n')
    })
    const without = (...levels: string[]): string[] =>
      linesOfALog.filter((line) => !levels.some((level) => line.includes(`"${level}"`)))
    t.strictSame(printed, [without('info', 'warn'), without('info')])
  },
)
