import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { persistentVolumes, pods, volumeAttachments } from '../../../src/api/kube/resources.ts'
import type { RelatedResource } from '../../../src/hub/authorization/node-authorizer.ts'
import { podRelations, relationsOf } from '../../../src/hub/authorization/node-relations.ts'
import { PodReferencesByVersion } from '../../../src/hub/boot/pod-references.ts'
import { FakeKubeletCache } from '../boot/fake-kubelet-cache.ts'
import { richPod } from '../boot/rich-pod.ts'

const nodeName = 'edge-1'
const podList = { gvr: pods, fieldSelector: `spec.nodeName=${nodeName}` }

const podOf = (name: string, spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', ...more },
  spec: { nodeName, ...spec },
})

const relations = (cache: FakeKubeletCache) => {
  const isRelated = relationsOf({
    nodeName,
    cache: () => cache,
    pods: () => podRelations({ nodeName, cache, references: new PodReferencesByVersion() }),
  })
  return (resource: RelatedResource, where: string, node = nodeName): boolean | undefined => {
    const [namespace = '', name = ''] = where.split('/')
    return isRelated(node, resource, { namespace, name })
  }
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a node is related to what its pods name, in ${encoding}`, async (t) => {
    const is = relations(new FakeKubeletCache(encoding).list(podList, 'Pod', [richPod]))
    t.equal(is('pods', 'plant/press'), true)
    t.equal(is('serviceaccounts', 'plant/operator'), true)
    t.equal(is('secrets', 'plant/env-secret'), true)
    t.equal(is('secrets', 'plant/registry'), true)
    t.equal(is('configmaps', 'plant/perhaps'), true)
    t.equal(is('resourceclaims.resource.k8s.io', 'plant/camera-of-the-hall'), true)
    t.equal(is('resourceclaims.resource.k8s.io', 'plant/press-extended-resources-7'), true)
    t.equal(is('pods', 'plant/other'), false)
    t.equal(is('configmaps', 'other/perhaps'), false)
    t.equal(is('serviceaccounts', 'plant/default'), false)
  })
}

void t.test('a completed pod relates its objects, a mirror pod itself alone', async (t) => {
  const ended = { ...podOf('a', { serviceAccountName: 'x' }), status: { phase: 'Succeeded' } }
  const annotations = { 'kubernetes.io/config.mirror': 'h' }
  const mirror = podOf('b', { serviceAccountName: 'y' }, { annotations })
  const is = relations(new FakeKubeletCache('json').list(podList, 'Pod', [ended, mirror]))
  t.equal(is('serviceaccounts', 'shop/x'), true)
  t.equal(is('pods', 'shop/b'), true)
  t.equal(is('serviceaccounts', 'shop/y'), false)
})

void t.test('a pod that names no service account is related to none', async (t) => {
  const list = [podOf('a', {}), podOf('b', { serviceAccountName: '' })]
  const is = relations(new FakeKubeletCache('json').list(podList, 'Pod', list))
  t.equal(is('pods', 'shop/a'), true)
  t.equal(is('serviceaccounts', 'shop/default'), false)
  const named = [podOf('a', { serviceAccountName: 'default' })]
  const other = relations(new FakeKubeletCache('json').list(podList, 'Pod', named))
  t.equal(other('serviceaccounts', 'shop/default'), true)
})

void t.test(
  'volumes and their secrets are unrelated without claims, and unknown while claims are',
  async (t) => {
    const without = relations(new FakeKubeletCache('json').list(podList, 'Pod', [podOf('a', {})]))
    t.equal(without('persistentvolumes', '/v'), false)
    t.equal(without('secrets', 'shop/of-a-volume'), false)
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
    const cache = new FakeKubeletCache('json').list(podList, 'Pod', [podOf('a', { volumes })])
    const is = relations(cache)
    t.equal(is('persistentvolumeclaims', 'shop/data'), true)
    t.equal(is('persistentvolumes', '/v'), undefined)
    t.equal(is('secrets', 'shop/of-a-volume'), undefined)
    cache.put(persistentVolumes, '', 'v', {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'v' },
      spec: { claimRef: { namespace: 'shop', name: 'data' } },
    })
    t.equal(is('persistentvolumes', '/v'), true)
    t.equal(is('persistentvolumes', 'shop/v'), undefined)
  },
)

void t.test('an attachment is related if it was read, and is of this node', async (t) => {
  const attachment = (node: string): JsonObject => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name: node },
    spec: { nodeName: node },
  })
  const cache = new FakeKubeletCache('json')
    .list(podList, 'Pod', [])
    .put(volumeAttachments, '', 'edge-1', attachment('edge-1'))
    .put(volumeAttachments, '', 'edge-2', attachment('edge-2'))
  const is = relations(cache)
  t.equal(is('volumeattachments.storage.k8s.io', '/edge-1'), true)
  t.equal(is('volumeattachments.storage.k8s.io', '/edge-2'), undefined)
  t.equal(is('volumeattachments.storage.k8s.io', '/other'), undefined)
})

void t.test('relations are unknown without the pods, and for another node', async (t) => {
  const blind = relations(new FakeKubeletCache('json'))
  t.equal(blind('secrets', 'shop/s'), undefined)
  const is = relations(new FakeKubeletCache('json').list(podList, 'Pod', []))
  t.equal(is('secrets', 'shop/s'), false)
  t.equal(is('secrets', 'shop/s', 'edge-2'), undefined)
  t.equal(is('resourceslices.resource.k8s.io', '/s'), undefined)
})
