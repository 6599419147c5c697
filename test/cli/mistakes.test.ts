/** Runs the mistakes of docs/design/mistakes.md as a shell would, and looks for their messages. */
import t from 'tap'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { rowsUnder } from '../tables.ts'

t.setTimeout(200_000)

const kubeconfig = (cluster: object): string =>
  JSON.stringify({
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1', ...cluster } }],
    users: [{ name: 'u', user: { token: 'x' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })

const folder = t.testdir({
  'ca.txt': 'not a certificate',
  'broken.yaml': 'server-addr: [a\nfoo: bar: x',
  'misspelt.yaml': 'server-adr: https://a\n',
  'list.yaml': '- a\n',
  'chart.yaml': 'kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n',
  'unreachable.conf': kubeconfig({}),
  'bad-ca.conf': kubeconfig({ 'certificate-authority-data': btoa('not a certificate') }),
})

const { PATH, NODE_COMPILE_CACHE } = process.env

const run = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: unknown; readonly err: string }>((resolve) => {
    const options = { cwd: folder, env: { PATH, NODE_COMPILE_CACHE, ...env } }
    execFile(process.execPath, [nodehubProgram, ...argv], options, (error, _out, err) =>
      resolve({ code: error?.code ?? 0, err }),
    )
  })

const page = readFileSync('docs/design/mistakes.md', 'utf8')
const rows = rowsUnder(page, '# Mistakes and their messages')

void t.test('each mistake has a message that says what to do', async (t) => {
  t.ok(rows.length >= 20)
  for (const [typed = '', message = '', advice = ''] of rows) {
    const { code, err } = await run(typed.slice(1, -1).split(' '))
    t.ok(code === 1 || code === 2, typed)
    t.ok(err.includes(message.slice(1, -1)), typed, { err, message })
    t.notMatch(err, /^ +at /m, `${typed}: no stack`)
    t.not(advice, '', typed)
  }
})

void t.test('a misspelt environment variable has a suggestion', async (t) => {
  const { err } = await run(['check-config'], { NODEHUB_SEVER_ADDR: 'https://a' })
  t.match(err, /`([^`]+)`\n$/.exec(page)?.[1])
})
