import t from 'tap'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turn } from '../../src/base/clock.ts'
import { podsOfNode, type CloudServer } from '../kit/cloud.ts'
import { startCloud } from '../kit/hub.ts'
import { signal, startHubProcess, type HubProcess } from '../kit/hub-process.ts'

t.setTimeout(120_000) // a process that starts takes its time on a busy machine

const aPod = '/api/v1/namespaces/default/pods/a'

/** A hub whose API servers are named in a file, which is told to read it again. */
async function configured(
  t: Parameters<typeof startHubProcess>[0],
  clouds: readonly CloudServer[],
) {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-reload-'))
  const file = join(rootDir, 'config.yaml')
  const write = (servers: readonly CloudServer[], more = ''): void =>
    writeFileSync(file, `server-addr: ${servers.map(({ url }) => url).join(',')}\n${more}`)
  write(clouds)
  const hub = await startHubProcess(t, { upstreams: [], flags: [`--config=${file}`] }, rootDir)
  const reread = async (said: RegExp): Promise<void> => {
    const from = hub.lines.length
    signal(hub.pid, 'SIGHUP')
    await hub.says(said, from)
  }
  return { hub, write, reread }
}

async function sample(hub: HubProcess, name: string): Promise<number> {
  const { body } = await hub.ops.get('/metrics')
  const line = body
    .toString()
    .split('\n')
    .find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

const readAgain = /^the configuration was read again/

void t.test('API servers are exchanged under a watch, which goes on where it can', async (t) => {
  const [first, second] = [await startCloud(t), await startCloud(t)]
  first.addPods('a')
  second.addPods('a')
  const { hub, write, reread } = await configured(t, [first])
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  write([first, second], 'lb-mode: priority\nmax-requests-in-flight: 9\nlog-level: debug\n')
  await reread(readAgain)
  first.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED', 'the watch has not noticed')
  t.equal((await kubelet.get(aPod)).status, 200)
  await hub.says(/^answered/)
  t.pass('the log level has changed')
  write([second])
  await reread(readAgain)
  t.equal(await watch.end(), 'ended', 'on an API server that is gone it ends cleanly')
  const seen = second.sandbox.nextRequest(({ path }) => path === aPod)
  t.equal((await kubelet.get(aPod)).status, 200)
  await seen
  t.equal(await sample(hub, 'nodehub_config_reload_total{result="success"}'), 2)
})

void t.test('a file with mistakes leaves all as it was, and that is told', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const { hub, write, reread } = await configured(t, [cloud])
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  write([], 'max-requests-in-flight: none\n')
  await reread(/^the configuration cannot be used; the last good one stays/)
  cloud.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED')
  const verbose = async (): Promise<string> =>
    (await hub.ops.get('/readyz?verbose')).body.toString()
  t.match(await verbose(), /\[ \]config unusable since .*max-requests-in-flight.*"none".*\n/)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  t.equal(await sample(hub, 'nodehub_config_reload_total{result="failure"}'), 1)
  write([cloud], 'serve-port: 1\ndisk-cache-path: /elsewhere\n')
  await reread(/^--disk-cache-path: the change takes effect at the next start$/)
  t.notMatch(await verbose(), /config/)
  t.equal((await kubelet.get(aPod)).status, 200)
})

void t.test('whose answers are recorded changes with the next request', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const { hub, write, reread } = await configured(t, [cloud])
  const recorded = () => sample(hub, 'nodehub_recorded_total{kind="object"}')
  const operator = hub.as('operator')
  t.equal((await operator.get(aPod)).status, 200)
  t.equal(await recorded(), 0)
  write([cloud], 'cache-components: kubelet,operator\n')
  await reread(readAgain)
  t.equal((await operator.get(aPod)).status, 200)
  while ((await recorded()) !== 1) await turn()
})
