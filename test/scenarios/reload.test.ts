import t from 'tap'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BootVerdict } from '../../src/hub/boot/verdict.ts'
import {
  allServices,
  nodeName,
  podsOfNode,
  service,
  services,
  type CloudServer,
} from '../kit/cloud.ts'
import { startCloud } from '../kit/hub.ts'
import { signal, startHubProcess, type HubProcess } from '../kit/hub-process.ts'
import { FilterFolder, moduleOf } from '../kit/own-filter.ts'
import { until } from '../kit/until.ts'

t.setTimeout(300_000) // a process that starts takes its time on a busy machine

const aPod = '/api/v1/namespaces/default/pods/a'

/** A hub whose API servers are named in a file, which is made to read it again. */
async function configured(
  t: Parameters<typeof startHubProcess>[0],
  clouds: readonly CloudServer[],
) {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-reload-'))
  const file = join(rootDir, 'config.yaml')
  const write = (
    servers: readonly { readonly url: string }[],
    more = '',
    node = nodeName,
  ): void => {
    const urls = servers.map(({ url }) => url).join(',')
    writeFileSync(file, `server-addr: ${urls}\nnode-name: ${node}\n${more}`)
  }
  write(clouds)
  const hub = await startHubProcess(t, { upstreams: [], flags: [`--config=${file}`] }, rootDir)
  const reread = async (said: RegExp): Promise<void> => {
    const from = hub.lines.length
    signal(hub.pid, 'SIGHUP')
    await hub.says(said, from)
  }
  const verbose = async (): Promise<string> =>
    (await hub.ops.get('/readyz?verbose')).body.toString()
  return { rootDir, hub, write, reread, verbose }
}

async function sample(hub: HubProcess, name: string): Promise<number> {
  const { body } = await hub.ops.get('/metrics')
  const line = body
    .toString()
    .split('\n')
    .find((each) => each.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

const kubeconfigWith = (token: string): string =>
  JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    clusters: [{ name: 'k', cluster: { server: 'https://unused' } }],
    users: [{ name: 'u', user: { token } }],
  })

const readAgain = /^the configuration was read again/

void t.test('API servers are exchanged under a watch, which goes on where it can', async (t) => {
  const [first, second] = [await startCloud(t), await startCloud(t)]
  first.addPods('a')
  // Of one cluster: never behind what the first one has shown.
  second.addPods('a', 'b')
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
  second.addPods('c')
  t.match(await watch.next(), { object: { metadata: { name: 'c' } } }, 'it goes on at the other')
  const seen = second.sandbox.nextRequest(({ path }) => path === aPod)
  t.equal((await kubelet.get(aPod)).status, 200)
  await seen
  t.equal(await sample(hub, 'nodehub_config_reloads_total{result="success"}'), 2)
})

void t.test('a file with mistakes leaves all as it was, and is reported', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const { hub, write, reread, verbose } = await configured(t, [cloud])
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  write([], 'max-requests-in-flight: none\n')
  await reread(/^the configuration cannot be used; the last good one stays/)
  cloud.addPods('b')
  t.equal((await watch.next())?.type, 'ADDED')
  t.match(await verbose(), /\[ \]config unusable since .*max-requests-in-flight.*"none".*\n/)
  t.equal((await hub.ops.get('/readyz')).status, 200)
  t.equal(await sample(hub, 'nodehub_config_reloads_total{result="failure"}'), 1)
  t.equal(await sample(hub, 'nodehub_config_last_reload_successful'), 0)
  write([cloud], 'serve-port: 1\ndisk-cache-path: /elsewhere\n')
  await reread(/^--disk-cache-path: the change takes effect at the next start$/)
  t.notMatch(await verbose(), /config unusable/)
  await until('the metrics to be made anew', async () => {
    return (await sample(hub, 'nodehub_config_last_reload_successful')) === 1
  })
  t.equal((await kubelet.get(aPod)).status, 200)
})

void t.test('a setting that waits for the next start has no effect, and is named', async (t) => {
  const cloud = await startCloud(t)
  const { rootDir, hub, write, reread, verbose } = await configured(t, [cloud])
  // A reload after which the hub looks at its address: its credentials change, too.
  const kubeconfig = join(rootDir, 'hub.conf')
  writeFileSync(kubeconfig, kubeconfigWith(cloud.sandbox.token('hub')), { mode: 0o600 })
  write(
    [cloud],
    `hub-address: 127.0.0.1:1\nmin-request-timeout: 0s\nkubeconfig: ${kubeconfig}\n`,
    'x',
  )
  const waits =
    '--node-name, --hub-address, --min-request-timeout: the change takes effect at the next start'
  await reread(new RegExp(`^${waits}$`))
  t.match(await verbose(), `[ ]config ${waits}\n`)
  t.notMatch(await verbose(), /^\[.\]hub-address/m)
  const boot = JSON.parse((await hub.ops.get('/inspect/boot')).body.toString()) as BootVerdict
  t.equal(boot.node.name, nodeName)
  const proxy = hub.as('kube-proxy')
  const { resourceVersion } = await proxy.list(allServices)
  const watch = await proxy.watch(allServices, { resourceVersion })
  cloud.sandbox.create(services, service('a', '10.96.0.1'))
  t.equal((await watch.next())?.type, 'ADDED', 'a watch lasts as long as it did')
  write([cloud])
  await reread(readAgain)
  t.notMatch(await verbose(), /config/)
})

void t.test('filters that cannot be used leave all as it was, until they are mended', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  cloud.sandbox.create(services, service('a', '10.96.0.1'))
  const { hub, write, reread, verbose } = await configured(t, [cloud])
  const folder = new FilterFolder(t)
  const file = folder.write('own.mjs', 'export const = 3')
  const settings = `filter-module: ${file}\ncache-components: kubelet,operator\n`
  write([cloud], `${settings}max-requests-in-flight: none\n`)
  const unusable = /^the configuration cannot be used; the last good one stays/
  await reread(unusable)
  t.match(
    await verbose(),
    /\[ \]config unusable since .*max-requests-in-flight.*; --filter-module: .*own\.mjs.*SyntaxError.*\n/,
  )
  write([cloud], settings)
  await reread(unusable)
  t.equal(await sample(hub, 'nodehub_config_reloads_total{result="failure"}'), 2)
  const read = async (): Promise<readonly string[]> => {
    t.equal((await hub.as('operator').get(aPod)).status, 200)
    return (await hub.as('kube-proxy').list(allServices)).names
  }
  const recorded = () => sample(hub, 'nodehub_recorded_total{kind="object"}')
  t.strictSame(await read(), ['default/a'])
  t.equal(await recorded(), 0, 'not even the other setting has changed')
  folder.write('own.mjs', moduleOf('own', `'withhold'`))
  await reread(readAgain)
  t.notMatch(await verbose(), /config/)
  t.strictSame(await read(), [], 'the filters act with the first request')
  await until('the answer to be recorded', async () => (await recorded()) === 1)
})

void t.test('the recorded components change with the next request', async (t) => {
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
  await until('the answer to be recorded', async () => (await recorded()) === 1)
})
