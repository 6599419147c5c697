import t from 'tap'
import { kubeletCache, podsOf } from '../../../src/hub/boot/kubelet-cache.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { nodeIdentity, type Identity } from '../../../src/api/request/identity.ts'
import type { CollectionKey } from '../../../src/hub/store/store.ts'
import type { LogStore } from '../../../src/hub/store/log/log-store.ts'
import { open } from '../store/log/opened.ts'
import { encoded } from './rich-pod.ts'

const nodeName = 'edge-1'
const secrets = { group: '', version: 'v1', resource: 'secrets' }
const key = (
  encoding: Encoding,
  with_: Partial<CollectionKey> & { identity?: Identity } = {},
): CollectionKey => ({
  partition: {
    identity: with_.identity ?? nodeIdentity,
    representation: objectRepresentation(encoding).key,
  },
  gvr: podsOf(nodeName).gvr,
  labelSelector: '',
  fieldSelector: podsOf(nodeName).fieldSelector ?? '',
  ...with_,
})

async function list(
  store: LogStore,
  at: CollectionKey,
  kind: string,
  ...names: string[]
): Promise<void> {
  const encoding = at.partition.representation.startsWith('protobuf') ? 'protobuf' : 'json'
  const gvk = { group: at.gvr.group, version: at.gvr.version, kind }
  await using replacement = store.replace(at)
  const objects = names.map(
    (name) =>
      encoded(encoding, gvk, { metadata: { name, namespace: 'plant', resourceVersion: '5' } })
        .object,
  )
  await replacement.add({ objects })
  await replacement.commit({
    gvk: { ...gvk, kind: `${kind}List` },
    resourceVersion: '9',
    extra: '',
  })
}

const namesIn = (found: ReturnType<ReturnType<typeof kubeletCache>['collection']>) =>
  found && [...found.objects].map(({ name }) => name)

void t.test('the kubelet’s encoding is that of its recorded pods', async (t) => {
  await using store = await open(t.testdir())
  t.strictSame(kubeletCache(store, nodeName).encodings, ['protobuf', 'json'])
  await list(store, key('json'), 'Pod', 'a')
  t.strictSame(kubeletCache(store, nodeName).encodings, ['json'])
  await list(store, key('protobuf'), 'Pod', 'b')
  const both = kubeletCache(store, nodeName)
  t.strictSame(both.encodings, ['protobuf', 'json'])
  t.strictSame(namesIn(both.collection(podsOf(nodeName))), ['b'])
})

void t.test('a list that is missing is taken from a wider one', async (t) => {
  await using store = await open(t.testdir())
  await list(store, key('protobuf'), 'Pod')
  await list(
    store,
    key('protobuf', { gvr: secrets, namespace: 'plant', fieldSelector: '' }),
    'Secret',
    'tls',
    'other',
  )
  const cache = kubeletCache(store, nodeName)
  const query = { gvr: secrets, namespace: 'plant', fieldSelector: 'metadata.name=tls' }
  t.strictSame(namesIn(cache.collection(query)), ['tls'])
  t.strictSame(namesIn(cache.collection({ ...query, fieldSelector: 'metadata.name=none' })), [])
  t.equal(cache.collection({ ...query, namespace: 'elsewhere' }), undefined)
})
