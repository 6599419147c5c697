import t from 'tap'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lint } from '../../src/cli/lint-command.ts'
import { nodehubProgram } from '../kit/hub-programs.ts'
import { said, type Said } from '../kit/terminal.ts'

const linted = (...argv: string[]): Promise<Said> => said((terminal) => lint.run(argv, terminal))

/** Writes a manifest for a test and gives its path. */
function file(t: { testdir(): string }, name: string, content: string): string {
  const path = join(t.testdir(), name)
  writeFileSync(path, content)
  return path
}

const fine = 'kind: Pod\napiVersion: v1\nmetadata: { name: p }\nspec: {}\n'
const warned =
  'kind: Pod\nmetadata: { name: p }\nspec:\n  hostNetwork: true\n  dnsPolicy: Default\n'
const wrong =
  'kind: NodePool\napiVersion: apps.openyurt.io/v1beta2\nmetadata: { name: hn }\nspec:\n  type: Cloud\n  hostNetwork: true\n'

void t.test('no findings print nothing, and exit 0', async (t) => {
  t.strictSame(await linted(file(t, 'a.yaml', fine)), { code: 0, out: '', err: '' })
})

void t.test('errors exit 1, warnings above --max-warnings too', async (t) => {
  const path = file(t, 'a.yaml', warned)
  const { code, out } = await linted(path)
  t.equal(code, 0)
  t.match(out, `${path}:4:3: warning: Pod p: no container declares a port`)
  t.match(out, /^undeclared-port: The scheduler and the kubelet .*\n {2}https:/m)
  t.equal((await linted(path, '--max-warnings=1')).code, 0)
  t.equal((await linted(path, '--max-warnings=0')).code, 1)
  t.equal((await linted(file(t, 'a.yaml', wrong))).code, 1)
})

void t.test('unreadable files exit 2, and the others are linted', async (t) => {
  const { code, out, err } = await linted(file(t, 'a.yaml', `${wrong}---\na: [\n`), '/not/there')
  t.equal(code, 2)
  t.match(out, 'cloud-host-network')
  t.match(err, /a\.yaml:9:1: .*\n.*\/not\/there: it cannot be read: there is no such file$/m)
  const flags = await linted('--outptu=json', '--pool=x=y', '--output=xml')
  t.equal(flags.code, 2)
  t.match(flags.err, 'did you mean --output?')
  t.match(flags.err, '--pool: "x=y" is not NAME=host-network')
  t.match(flags.err, '"xml" is none of text, json')
  t.match(flags.err, 'FILE is missing')
})

void t.test('pools in the files apply to all, and --pool precedes them', async (t) => {
  const pod = file(
    t,
    'pod.yaml',
    'kind: Pod\nspec: { nodeSelector: { apps.openyurt.io/nodepool: hn } }\n',
  )
  const pool = join(pod, '..', 'pool.yaml')
  writeFileSync(pool, wrong.replace('Cloud', 'Edge'))
  t.match((await linted(pod)).out, 'unknown-pool')
  t.match(await linted(pod, pool), { code: 1, out: 'no-pod-network' })
  t.strictSame(await linted(pod, pool, '--pool=hn=standard'), { code: 0, out: '', err: '' })
})

void t.test('an object given twice is an update', async (t) => {
  const path = file(t, 'a.yaml', `${fine}---\n${fine.replace('{}', '\n  hostNetwork: true')}`)
  t.match(await linted(path), { code: 1, out: `${path}:10:3: error: Pod p: hostNetwork of a pod` })
})

void t.test('JSON has each finding with its reason and its document', async (t) => {
  const path = file(t, 'a.yaml', wrong)
  const { out } = await linted(path, '-o', 'json')
  t.match(JSON.parse(out), [
    {
      file: path,
      line: 5,
      column: 3,
      rule: 'cloud-host-network',
      level: 'error',
      object: 'NodePool hn',
      reason: /refuses/,
      document: /^https:/,
    },
  ])
  t.strictSame(JSON.parse((await linted(file(t, 'a.yaml', fine), '-o', 'json')).out), [])
})

void t.test('standard input is read for -', async (t) => {
  const { promise, resolve } = Promise.withResolvers<[unknown, string]>()
  const child = execFile(process.execPath, [nodehubProgram, 'lint', '-'], (error, out) =>
    resolve([error?.code, out]),
  )
  child.stdin?.end(wrong)
  const [code, out] = await promise
  t.equal(code, 1)
  t.match(out, '-:5:3: error: NodePool hn')
})

void t.test('a file without Kubernetes objects is named, and exits 2', async (t) => {
  const kubeconfig = 'apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n'
  for (const text of ['', 'services:\n  web: { image: nginx }\n', kubeconfig]) {
    const { code, out, err } = await linted(file(t, 'compose.yaml', text))
    t.strictSame([code, out], [2, ''])
    t.match(err, /compose\.yaml: it holds no Kubernetes object/)
  }
})
