import t from 'tap'
import { execFile, spawn, type ExecFileException } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parse } from 'yaml'
import { runCli } from '../../../src/cli/cli.ts'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { BootVerdict } from '../../../src/hub/boot/verdict.ts'
import { addCsiNode, kubeletOf, podWith, startUp } from '../../kit/bootable.ts'
import { pods, secrets } from '../../kit/cloud.ts'
import { freePort } from '../../kit/free-port.ts'
import { nodehubProgram } from '../../kit/hub-programs.ts'
import { startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { until } from '../../kit/until.ts'
import { portOf } from '../../kit/wire/listening.ts'
import { said, type Said } from '../../kit/terminal.ts'

/** The flags with which this hub can be inspected, whoever runs the test. */
const flagsFor = (hub: TestHub): [string, string] => [
  `--serve-port=${hub.hub.opsPort}`,
  `--token-file=${hub.inspectTokenFile}`,
]

const run = (...argv: string[]): Promise<Said> => said((terminal) => inspect.run(argv, terminal))

const secretPath = '/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dpassword'

void t.test('boot lists what is missing, and exits 0 once nothing is', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  const password = Buffer.from('the-password-of-the-plant').toString('base64')
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password },
  })
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  cloud.sandbox.create(pods, podWith('bare'))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const flags = flagsFor(hub)
  await startUp(kubeletOf(hub))

  const before = await run('boot', ...flags)
  t.match(before, { code: 1, err: '' })
  t.match(before.out, 'would come back without a link; 1 of its 2 pods would not.')
  t.match(
    before.out,
    /^default\/press +missing +secrets +default\/password +it is not in the cache$/m,
  )
  t.match(before.out, /^default\/bare$/m)

  const json = await run('boot', ...flags, '--output=json')
  t.equal(json.code, 1)
  const verdict = JSON.parse(json.out) as BootVerdict
  t.strictSame(
    verdict.pods.map(({ name, ready }) => [name, ready]),
    [
      ['bare', true],
      ['press', false],
    ],
  )

  await kubeletOf(hub).get(secretPath)
  const after = await until('the report to be good', async () => {
    const report = await run('boot', ...flags)
    return report.code === 0 && report
  })
  t.match(after.out, 'Node edge-1 and its pods (2) would come back without a link.')
  t.notMatch(`${before.out}${json.out}${after.out}`, password)

  // As an operator runs it.
  const { promise, resolve } = Promise.withResolvers<[ExecFileException | null, string]>()
  execFile(
    process.execPath,
    [nodehubProgram, 'inspect', 'boot', ...flags, '-o', 'json'],
    (error, out) => resolve([error, out]),
  )
  const [error, out] = await promise
  t.equal(error, null)
  t.equal((JSON.parse(out) as BootVerdict).ready, true)
})

void t.test('boot reports a node that is not ready itself', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const { code, out } = await run('boot', ...flagsFor(hub))
  t.equal(code, 1)
  t.match(out, 'Nothing of node edge-1 is recorded yet: its kubelet has not read')
  t.match(out, /^\(node\) +missing +pods +never listed, or not stored: /m)
})

void t.test('without an answer it exits 2', async (t) => {
  const nobody = await run('boot', `--serve-port=${await freePort()}`)
  t.match(nobody, { code: 2, out: '' })
  t.match(nobody.err, /cannot be inspected: .*ECONNREFUSED.*; of a stopped hub, inspect status /)
  const server = createServer((_, response) => response.writeHead(404).end('404 page not found\n'))
  const other = await run('boot', `--serve-port=${await portOf(t, server)}`)
  t.match(other, { code: 2, out: '' })
  t.match(other.err, 'cannot be inspected: 404 404 page not found')
})

void t.test('a refusal comes with advice', async (t) => {
  const [shown, file] = [[] as (string | undefined)[], join(t.testdir({ token: 'abc\n' }), 'token')]
  const server = createServer(({ headers }, response) => {
    shown.push(headers.authorization)
    response.writeHead(shown.length === 1 ? 403 : 401).end('inspections are for root\n')
  })
  const port = `--serve-port=${await portOf(t, server)}`
  for (const flags of [[port], [port, `--token-file=${file}`]]) {
    const { code, err } = await run('boot', ...flags)
    t.equal(code, 2)
    t.match(err, /40[13] inspections are for root\. Run this command as root, or with --token-file/)
  }
  t.strictSame(shown, [undefined, 'Bearer abc'])
  const none = await run('boot', port, `--token-file=${file}.gone`)
  t.match(none, { code: 2, out: '' })
  t.match(none.err, /--token-file=\S+\.gone cannot be read: ENOENT/)
})

void t.test('all mistakes are reported together', async (t) => {
  const { code, err } = await run('bot', 'more', '--outptu=json', '--serve-port=x', '--output=xml')
  t.equal(code, 2)
  for (const said of [
    'there is no report "bot", did you mean boot?',
    '"more"',
    'did you mean --output?',
    '--serve-port',
    '--output',
  ])
    t.match(err, said)
})

void t.test('a report that is gone ends with 2 and what takes its place', async (t) => {
  const { code, out, err } = await run('traffic')
  t.match({ code, out }, { code: 2, out: '' })
  t.match(err, 'node_yurthub_proxy_traffic_collector of /metrics counts the bytes')
})

void t.test('a report can be read as YAML', async (t) => {
  const hub = await startTestHub(t, { upstreams: [await startCloud(t)] })
  const { out } = await run('boot', ...flagsFor(hub), '-o', 'yaml')
  const verdict = parse(out) as BootVerdict
  t.equal(verdict.node.name, 'edge-1')
  t.equal(verdict.node.problems[0]?.reason, 'missing')
})

void t.test('--help is about the sub-command that it follows', async (t) => {
  const help = async (...words: string[]): Promise<string> =>
    (await said((terminal) => runCli([...words, '--help'], terminal))).out
  t.match(
    await help('inspect', 'boot'),
    /^Usage: nodehub inspect boot \[FLAG\.\.\.\]\n\nShows whether the node/,
  )
  t.match(
    await help('inspect'),
    /^Usage: nodehub inspect WHAT[^]*^ {2}boot$[^]*^ {2}host-network$/m,
  )
})

void t.test('--watch prints a report again when it has changed', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const command = [nodehubProgram, 'inspect', 'boot', ...flagsFor(hub), '--watch', '-o', 'json']
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const reports = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<BootVerdict> =>
    JSON.parse((await reports.next()).value ?? '') as BootVerdict
  t.equal((await next()).node.ready, false)
  addCsiNode(cloud)
  await startUp(kubeletOf(hub))
  let verdict = await next()
  while (!verdict.node.ready) verdict = await next()
  t.equal(verdict.ready, true)
})
