import t from 'tap'
import { podsOf } from '../../../src/hub/boot/kubelet-cache.ts'
import { NodePods } from '../../../src/hub/boot/needs.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'
import { richPod } from './rich-pod.ts'

const nodeName = 'edge-1'
const core = (resource: string) => ({ group: '', version: 'v1', resource })

const podWith = (name: string, volume: JsonObject, status: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'plant', uid: name, resourceVersion: '5' },
  spec: { nodeName, volumes: [{ name: 'v', ...volume }] },
  status,
})
const tls = { secret: { secretName: 'tls' } }

async function secretsIn(cache: FakeKubeletCache): Promise<readonly string[]> {
  const { objects } = await new NodePods(nodeName).needs(cache)
  return objects
    .filter(({ gvr }) => gvr.resource === 'secrets')
    .map(({ namespace, name }) => `${namespace}/${name}`)
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`pods that start again need what they refer to (${encoding})`, async (t) => {
    const known = new FakeKubeletCache(encoding).list(podsOf(nodeName), 'Pod', [
      podWith('press', tls),
      podWith('over', { secret: { secretName: 'of-a-run' } }, { phase: 'Succeeded' }),
    ])
    t.strictSame(await secretsIn(known), ['plant/tls'])
    known.list(podsOf(nodeName), 'Pod', [])
    t.strictSame(await secretsIn(known), [])
  })

  void t.test(`a volume's secret is in its namespace or the pod's (${encoding})`, async (t) => {
    const claim = { persistentVolumeClaim: { claimName: 'data' } }
    const known = new FakeKubeletCache(encoding)
    known
      .list(podsOf(nodeName), 'Pod', [podWith('press', claim)])
      .put(core('persistentvolumeclaims'), 'plant', 'data', {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data', namespace: 'plant' },
        spec: { volumeName: 'pv-1' },
      })
    for (const [spec, secret] of [
      [{ cephfs: { monitors: ['10.0.0.9:6789'], secretRef: { name: 'ceph' } } }, 'plant/ceph'],
      [{ azureFile: { shareName: 's', secretName: 'azure' } }, 'plant/azure'],
      [
        { azureFile: { shareName: 's', secretName: 'azure', secretNamespace: 'shares' } },
        'shares/azure',
      ],
    ] as const) {
      known.put(core('persistentvolumes'), '', 'pv-1', {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'pv-1' },
        spec,
      })
      t.strictSame(await secretsIn(known), [secret])
    }
  })

  void t.test(`what a pod refers to is read when it changes (${encoding})`, async (t) => {
    const node = new NodePods(nodeName)
    const status = { ...(richPod['status'] as JsonObject), phase: 'Pending' }
    const at = (resourceVersion: string, changes: JsonObject = {}): FakeKubeletCache => {
      const metadata = { ...(richPod['metadata'] as JsonObject), resourceVersion }
      const pod = { ...richPod, metadata, status, ...changes }
      return new FakeKubeletCache(encoding).list(podsOf(nodeName), 'Pod', [pod])
    }
    const first = await node.update(at('7'))
    t.equal(await node.update(at('8', { status: { ...status, podIP: '10.0.0.9' } })), first)
    t.equal(await node.update(at('8', { spec: {} })), first, 'a version that is known is not read')
    t.not(await node.update(at('9', { status: { ...status, phase: 'Succeeded' } })), first)
    const other = at('10', { spec: { imagePullSecrets: [{ name: 'other' }] } })
    t.ok((await node.needs(other)).objects.some(({ name }) => name === 'other'))
    const claims = { resourceClaimStatuses: [{ name: 'lamp', resourceClaimName: 'another' }] }
    const remade = await node.needs(at('11', { status: { ...status, ...claims } }))
    t.ok(remade.objects.some(({ name }) => name === 'another'))
    const running = { ...status, phase: 'Running' }
    const runs = await node.update(at('12', { status: running }))
    const debugged = at('13', { status: running, spec: { imagePullSecrets: [{ name: 'late' }] } })
    t.equal(await node.update(debugged), runs, 'what changes while it runs can wait')
    t.ok((await node.needs(debugged)).objects.some(({ name }) => name === 'late'))
    const before = await node.update(other)
    t.not(await node.update(other.list(podsOf(nodeName), 'Pod', [])), before)
  })

  void t.test(`no look brings back what a later one has replaced (${encoding})`, async (t) => {
    const node = new NodePods(nodeName)
    const many = 600
    // More than a slice of time takes. The second look finds only the last ones to have changed.
    const at = (first: string, last = first): FakeKubeletCache =>
      new FakeKubeletCache(encoding).list(
        podsOf(nodeName),
        'Pod',
        Array.from({ length: many }, (_, index) => {
          const [half, version] = index < many / 2 ? ['a', first] : ['b', last]
          const volumes = [{ name: 'v', secret: { secretName: `${half}${version}` } }]
          const named = { name: `p${index}`, namespace: 'plant', uid: `p${index}` }
          const metadata = { ...named, resourceVersion: version }
          return { metadata, spec: { nodeName, volumes } }
        }),
      )
    await node.update(at('1'))
    const earlier = node.update(at('2'))
    const { objects } = await node.needs(at('2', '3'))
    await earlier
    const secrets = objects.filter(({ gvr }) => gvr.resource === 'secrets')
    t.strictSame(
      secrets.map(({ name }) => name),
      ['a2', 'b3'],
    )
    const before = await node.update(at('2', '3'))
    await node.needs(at('2', '3'))
    t.equal(await node.update(at('2', '3')), before)
  })

  void t.test(`pods are named in the order of their list (${encoding})`, async (t) => {
    const node = new NodePods(nodeName)
    const pod = (name: string, resourceVersion: string): JsonObject => {
      const metadata = { ...(richPod['metadata'] as JsonObject), name, uid: name, resourceVersion }
      return { ...richPod, metadata }
    }
    const named = async (...pods: JsonObject[]): Promise<readonly string[]> => {
      const cache = new FakeKubeletCache(encoding).list(podsOf(nodeName), 'Pod', pods)
      const { pods: needs } = await node.needs(cache)
      return Array.isArray(needs) ? needs.map(({ name }) => name) : []
    }
    t.strictSame(await named(pod('a', '1'), pod('b', '2')), ['a', 'b'])
    t.strictSame(await named(pod('a', '3'), pod('b', '2')), ['a', 'b'], 'though one has changed')
  })
}
