import t from 'tap'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import type { StoppedStatus } from '../../../src/hub/wiring/stopped.ts'
import { addCsiNode, kubeletOf, podWith, startUp } from '../../kit/bootable.ts'
import { pods, secrets } from '../../kit/cloud.ts'
import { startCloud, startTestHub, type TestHub } from '../../kit/hub.ts'
import { signal, startHubProcess } from '../../kit/hub-process.ts'
import type { Teardown } from '../../kit/wire/wire.ts'
import { said, type Said } from '../../kit/terminal.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const password = Buffer.from('the-password-of-the-plant').toString('base64')

/** Every file under `folder`, with its content, mode and time of change. */
const contentOf = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const file = join(folder, name)
      const stat = statSync(file)
      const content = stat.isFile() ? readFileSync(file, 'base64') : ''
      return `${name} ${stat.mode} ${stat.mtimeMs} ${content}`
    })

const run = (what: string, ...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run([what, ...argv], terminal))

async function startNode(t: Teardown): Promise<TestHub> {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password },
  })
  cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = kubeletOf(hub)
  await startUp(kubelet)
  await kubelet.get('/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dpassword')
  return hub
}

void t.test('reports on a stopped hub read its store, and write nothing', async (t) => {
  const hub = await startNode(t)
  const { rootDir } = hub.config
  const flag = `--root-dir=${rootDir}`
  const running = await run('cache', flag)
  t.equal(running.code, 2)
  t.match(running.err, /a hub is running on \S+: inspect it at its --serve-port/)
  await hub.stop()

  const before = contentOf(rootDir)
  const status = await run('status', flag)
  t.equal(status.code, 1, 'it is not ready')
  t.match(status.out, /^The hub on edge-1 is stopped\.$/m)
  t.match(status.out, /^boot +would come back$/m)
  const cache = await run('cache', flag)
  t.equal(cache.code, 0)
  t.match(cache.out, /^pods +node +spec\.nodeName=edge-1 /m)
  const boot = await run('boot', flag)
  t.match(boot, { code: 0, err: '' })
  t.match(boot.out, 'Node edge-1 and its pods (1) would come back without a link.')
  const network = await run('host-network', flag)
  t.equal(network.code, 0)
  t.match(network.out, /^The hub is stopped; /)
  t.match(network.out, /^No pod is shown on the host's network/m)
  t.match((await run('certificates', flag)).out, /^serving +9999/m)
  const secret = await run('get', 'secret/password', flag)
  t.equal(secret.code, 0)
  t.match(secret.out, /^node +\d+ +20/m)
  t.match(secret.out, /^ {2}password: \(25 bytes\)$/m)
  t.match(await run('get', 'secret/other', flag), { code: 1, out: /No component of this node/ })
  t.match(await run('get', 'deployment/web', flag), {
    code: 2,
    err: /has read objects of this kind/,
  })
  const pod = await run('pod', 'default/press', flag)
  t.equal(pod.code, 0)
  t.match(pod.out, /^The hub is stopped; the kubelet is shown the pod on the pod network\.$/m)
  t.match(pod.out, /^ {2}name: press$/m)
  t.strictSame(contentOf(rootDir), before)
  t.notMatch(`${status.out}${cache.out}${boot.out}${network.out}${secret.out}`, password)

  const { err, code } = await run('upstreams', flag)
  t.equal(code, 2)
  t.match(
    err,
    /upstreams is about a running hub; of a stopped one there are status, cache, .*certificates, bundle, boot and host-network$/m,
  )
})

void t.test('commits of a killed hub are read from its log', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startHubProcess(t, { upstreams: [cloud] })
  await startUp(hub.as('kubelet'))
  signal(hub.pid, 'SIGKILL')
  await hub.ended()
  const state = join(hub.rootDir, 'state')
  const before = contentOf(state)
  const { out } = await run('status', `--root-dir=${state}`, '-o', 'json')
  const { stopped, collections } = JSON.parse(out) as StoppedStatus
  t.equal(stopped, true)
  t.ok(collections?.items.some(({ resource }) => resource === 'pods'))
  t.strictSame(contentOf(state), before)
})

void t.test('an unreadable store is reported with why', async (t) => {
  const none = await run('cache', `--root-dir=${t.testdir()}`)
  t.equal(none.code, 2)
  t.match(none.err, /there is no store in /)
  const damaged = t.testdir({ cache: { '0000000001.log': 'no log'.repeat(1000) } })
  t.match((await run('cache', `--root-dir=${damaged}`)).err, /no file of .* can be used/)

  const hub = await startNode(t)
  const { rootDir } = hub.config
  await hub.stop()
  rmSync(join(rootDir, 'seal.key'))
  const boot = await run('boot', `--root-dir=${rootDir}`)
  t.equal(boot.code, 2)
  t.match(boot.err, /no boot verdict: there is no key in /)
  t.match((await run('status', `--root-dir=${rootDir}`)).out, /^boot +no verdict$/m)
  const secret = await run('get', 'secret/password', `--root-dir=${rootDir}`)
  t.match(secret, { code: 2, err: /Secrets cannot be read: there is no key in / })
})
