/** The bundle of `npm run build`, alone in a folder: neither sources nor packages beside it. */
import { execFile } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Script } from 'node:vm'
import t, { type Test } from 'tap'
import { codeToKeep, keptCode } from '../../src/cli/compiled-code.ts'
import { podsOfNode, serviceAccounts } from '../kit/cloud.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'
import { freePort } from '../kit/free-port.ts'
import { otlpReceiver } from '../kit/otlp-receiver.ts'
import { rootFolder, startCloud } from '../kit/hub.ts'
import { hubFlags } from '../kit/hub-config.ts'
import { HubProcess, signal } from '../kit/hub-process.ts'

t.setTimeout(300_000)

const exec = promisify(execFile)
const project = join(import.meta.dirname, '..', '..')

const dist = join(rootFolder(t), 'dist')
await exec(...plainNode(join(project, 'bin', 'bundle.js'), dist))

/** The entry of a copy of the bundle. */
function bundle(t: Test): string {
  const folder = rootFolder(t)
  cpSync(dist, join(folder, 'dist'), { recursive: true })
  copyFileSync(join(project, 'package.json'), join(folder, 'package.json'))
  return join(folder, 'dist', 'src', 'main.js')
}

void t.test('the built hub serves offline from its store', async (t) => {
  const [program, cloud] = [bundle(t), await startCloud(t)]
  cloud.addPods('a', 'b')
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'reader', namespace: 'default' } })
  const [token, nextToken] = [await cloud.readerToken(), await cloud.readerToken(7200)]
  const rootDir = rootFolder(t)
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const start = (): HubProcess => {
    const hub = new HubProcess(rootDir, ports, hubFlags(rootDir, { upstreams: [cloud] }), program)
    t.teardown(() => hub.kill())
    return hub
  }

  const online = start()
  await online.says(/^listening/)
  t.strictSame((await online.as('kubelet').list(podsOfNode)).names, ['default/a', 'default/b'])
  t.equal((await online.as('kubelet', { token }).get(podsOfNode)).status, 200)
  await online.says(/^the keys of service accounts are known/)
  t.match(await online.ops.get('/'), { status: 200, body: /<title>nodehub/ }, 'the status page')
  t.strictSame(
    online.lines.filter(({ level }) => ['', 'error', 'fatal'].includes(level)),
    [],
  )
  signal(online.pid, 'SIGTERM')
  t.equal(await online.ended(), 0)
  const kept = join(rootDir, 'state', 'compiled', 'start.code')
  const source = readFileSync(join(dirname(program), 'cli', 'start.cjs'), 'utf8')
  t.ok(keptCode(dirname(kept), source), 'what was compiled is kept')
  t.equal(statSync(kept).mode & 0o777, 0o600)
  const { ino } = statSync(kept)
  await cloud.unplug()
  // A start that finds its certificates stored does without what makes them, and one without
  // tracing without OpenTelemetry.
  rmSync(join(dirname(program), 'cli', 'x509.cjs'))
  rmSync(join(dirname(program), 'cli', 'opentelemetry.js'))

  const offline = start()
  await offline.says(/^listening/)
  t.strictSame((await offline.as('kubelet').list(podsOfNode)).names, ['default/a', 'default/b'])
  const account = offline.as('kubelet', { token: nextToken })
  t.equal((await account.get(podsOfNode)).status, 200, 'jose is beside the bundle')
  signal(offline.pid, 'SIGTERM')
  t.equal(await offline.ended(), 0)
  t.equal(statSync(kept).ino, ino, 'it was used, and not made again')
})

void t.test('the built hub starts with unusable compiled code', async (t) => {
  const [program, cloud] = [bundle(t), await startCloud(t)]
  const rootDir = rootFolder(t)
  const kept = join(rootDir, 'state', 'compiled', 'start.code')
  mkdirSync(dirname(kept), { recursive: true, mode: 0o700 })
  const source = readFileSync(join(dirname(program), 'cli', 'start.cjs'), 'utf8')
  const ofAnother = new Script('(function () {})')
  const createCachedData = (): Buffer => ofAnother.createCachedData()
  writeFileSync(kept, codeToKeep({ source, createCachedData }))
  const { ino } = statSync(kept)
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const hub = new HubProcess(rootDir, ports, hubFlags(rootDir, { upstreams: [cloud] }), program)
  t.teardown(() => hub.kill())
  await hub.says(/^listening/)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), 0)
  t.not(statSync(kept).ino, ino, 'it is replaced')
})

void t.test('the built hub exports traces', async (t) => {
  const program = bundle(t)
  const [cloud, receiver] = await Promise.all([startCloud(t), otlpReceiver(t)])
  const rootDir = rootFolder(t)
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const flags = [
    `--tracing-endpoint=${receiver.url}`,
    '--tracing-sampling-rate-per-million=1000000',
  ]
  const hub = new HubProcess(
    rootDir,
    ports,
    hubFlags(rootDir, { upstreams: [cloud], flags }),
    program,
  )
  t.teardown(() => hub.kill())
  await hub.says(/^listening/)
  await hub.as('kubelet').list(podsOfNode)
  signal(hub.pid, 'SIGTERM')
  t.equal(await hub.ended(), 0)
  t.match(receiver.spans.at(-1), { name: 'GET /api/v1/pods' })
})
