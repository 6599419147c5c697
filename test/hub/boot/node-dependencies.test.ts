import t from 'tap'
import { podsOf } from '../../../src/hub/boot/kubelet-cache.ts'
import { bootPods } from '../../../src/hub/boot/node-dependencies.ts'
import { KnownPodReferences } from '../../../src/hub/boot/pod-references.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'

const nodeName = 'edge-1'
const core = (resource: string) => ({ group: '', version: 'v1', resource })

const podWith = (name: string, volume: JsonObject, status: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'plant', uid: name, resourceVersion: '5' },
  spec: { nodeName, volumes: [{ name: 'v', ...volume }] },
  status,
})
const tls = { secret: { secretName: 'tls' } }

function secretsIn(cache: FakeKubeletCache): readonly string[] {
  const listed = cache.collection(podsOf(nodeName))
  if (!listed) return ['never listed']
  const records = { nodeName, cache, references: new KnownPodReferences() }
  return [...bootPods(listed, records, { read: ({ objects }) => objects, malformed: () => [] })]
    .flatMap((objects) => objects ?? [])
    .filter(({ gvr }) => gvr.resource === 'secrets')
    .map(({ namespace, name }) => `${namespace}/${name}`)
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`pods that start again need what they refer to (${encoding})`, async (t) => {
    const known = new FakeKubeletCache(encoding).list(podsOf(nodeName), 'Pod', [
      podWith('press', tls),
      podWith('over', { secret: { secretName: 'of-a-run' } }, { phase: 'Succeeded' }),
    ])
    t.strictSame(secretsIn(known), ['plant/tls'])
    known.list(podsOf(nodeName), 'Pod', [])
    t.strictSame(secretsIn(known), [])
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
      t.strictSame(secretsIn(known), [secret])
    }
  })
}
