import t from 'tap'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { objectOf } from '../kit/client.ts'
import { nodeName, podsOfNode } from '../kit/cloud.ts'
import { logFilesIn } from '../kit/log-on-disk.ts'
import { onlineNode, startCloud, startTestHub } from '../kit/hub.ts'

void t.test('the bytes of the log are counted, and nothing that was not written', async (t) => {
  const { hub } = await onlineNode(t, 'a', 'b')
  const kubelet = hub.as('kubelet')
  const { status } = await kubelet.get('/api/v1/namespaces/default/pods/a')
  t.equal(status, 200)
  const written = (): Promise<number> => hub.metric('nodehub_store_disk_written_bytes_total')
  const before = await written()
  t.ok(before > 50, 'of an object')
  await kubelet.get('/api/v1/namespaces/default/pods/a')
  t.equal(await written(), before, 'it was there already')
  await kubelet.list(podsOfNode)
  t.equal(await hub.metric('nodehub_store_failures_total'), 0)
  const files = logFilesIn(hub.config.cachePath)
  const onDisk = files.reduce((sum, file) => sum + statSync(file).size, 0)
  t.equal(await hub.metric('nodehub_store_bytes'), onDisk)
  t.ok((await written()) >= onDisk, 'all of the log, at least')
})

void t.test('a lease that is renewed all the time costs the disk nothing', async (t) => {
  const { hub } = await onlineNode(t)
  const kubelet = hub.as('kubelet')
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const kind = { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1' }
  const spec = { holderIdentity: nodeName, leaseDurationSeconds: 40 }
  const made = { ...kind, metadata: { name: nodeName, namespace: 'kube-node-lease' }, spec }
  let answer = await kubelet.send(leases, { method: 'POST', body: made })
  t.equal(answer.status, 201)
  const cost = (): Promise<number> => hub.metric('nodehub_store_disk_written_bytes_total')
  const before = await cost()
  for (let round = 0; round < 10; round++) {
    const body = { ...objectOf(answer), spec: { ...spec, leaseTransitions: round } }
    answer = await kubelet.send(`${leases}/${nodeName}`, { method: 'PUT', body })
    t.equal(answer.status, 200)
  }
  t.equal(await cost(), before)
})

void t.test('a log that cannot be used is reported until the next start', async (t) => {
  const { hub } = await onlineNode(t)
  await hub.stop()
  for (const file of logFilesIn(hub.config.cachePath)) rmSync(file)
  writeFileSync(join(hub.config.cachePath, '0000000001.log'), 'no log'.repeat(1000))
  await hub.start()
  const text = async (): Promise<string> => await hub.readyz()
  t.match(await text(), /^\[ \]cache begun empty at /m)
  t.match(hub.lines.join(''), `no file of ${hub.config.cachePath} can be used`)
  t.equal(await hub.metric('nodehub_store_set_aside_total'), 1)
  await hub.restart()
  t.notMatch(await text(), /cache begun empty/)
})

void t.test('the limits of cache and memory are reported beside their use', async (t) => {
  const cloud = await startCloud(t)
  const flags = ['--cache-max-bytes=64Mi', '--memory-limit=300']
  const hub = await startTestHub(t, { upstreams: [cloud], flags })
  t.equal(await hub.metric('nodehub_store_limit_bytes'), 64 * 1024 * 1024)
  t.equal(await hub.metric('nodehub_memory_limit_bytes'), 300 * 1024 * 1024)
})
