import t from 'tap'
import { referencesOf, startsAtBoot } from '../../../src/hub/boot/references.ts'
import { cursorOf } from '../../../src/api/codec/cursor.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { encoded, podKind, richPod } from './rich-pod.ts'

function podIn(encoding: Encoding, pod: JsonObject) {
  const { gvk, object } = encoded(encoding, podKind, pod)
  return cursorOf(encoding, gvk, object)
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a pod in ${encoding} refers to all that its kubelet asks for`, async (t) => {
    const { objects, tokens, inlineDrivers, signers } = referencesOf(podIn(encoding, richPod))
    const said = objects.map(({ gvr, namespace, name, by, need }) =>
      [gvr.resource, namespace === '' ? name : `${namespace}/${name}`, by, need].join(' '),
    )
    t.strictSame(said.toSorted(), [
      'clustertrustbundles  listed optional',
      'clustertrustbundles plant-ca listed required',
      'configmaps plant/config list required',
      'configmaps plant/env-config list required',
      'configmaps plant/init-config list required',
      'configmaps plant/kube-root-ca.crt list required',
      'configmaps plant/perhaps list optional',
      'persistentvolumeclaims plant/data get required',
      'persistentvolumeclaims plant/press-cache get required',
      'resourceclaims plant/camera-of-the-hall get required',
      'resourceclaims plant/press-extended-resources-7 get required',
      'resourceclaims plant/press-lamp-x2v get required',
      'runtimeclasses gvisor listed required',
      'secrets plant/ceph get required',
      'secrets plant/csi get required',
      'secrets plant/debug-secret list required',
      'secrets plant/env-secret list required',
      'secrets plant/init-secret list required',
      'secrets plant/projected list optional',
      'secrets plant/registry list optional',
      'secrets plant/spare list optional',
      'secrets plant/tls list required',
      'secrets plant/twice list required',
      'serviceaccounts plant/operator get if-requested',
    ])
    const account = { namespace: 'plant', serviceAccount: 'operator' }
    t.strictSame(tokens, [
      { ...account, audiences: [], expirationSeconds: 3607 },
      { ...account, audiences: ['vault'], expirationSeconds: 600 },
    ])
    t.strictSame(inlineDrivers, ['inline.csi.example'])
    t.strictSame(signers, ['example.com/signer'])
  })

  void t.test(`which pods in ${encoding} start again with the node`, async (t) => {
    const { metadata } = richPod
    const starts = (changes: JsonObject): boolean =>
      startsAtBoot(podIn(encoding, { ...richPod, ...changes }))
    t.ok(starts({}))
    t.ok(starts({ status: { phase: 'Pending' } }))
    t.notOk(starts({ status: { phase: 'Succeeded' } }))
    t.notOk(starts({ status: { phase: 'Failed' } }))
    const deleted = { deletionTimestamp: '2026-11-21T10:16:51Z', deletionGracePeriodSeconds: 30 }
    t.notOk(starts({ metadata: { ...(metadata as JsonObject), ...deleted } }))
    const annotations = { 'kubernetes.io/config.mirror': 'a-hash' }
    t.notOk(starts({ metadata: { ...(metadata as JsonObject), annotations } }))
  })
}

void t.test('a pod that names no service account has the default one', async (t) => {
  const bare = { metadata: { name: 'bare', namespace: 'plant' }, spec: { containers: [] } }
  const { objects, serviceAccount } = referencesOf(podIn('json', bare))
  t.equal(serviceAccount, 'default')
  t.strictSame(objects, [], 'a kubelet reads no account for it')
})

void t.test('a pod beyond the decoding limit is refused as malformed', async (t) => {
  const env = [{ name: 'LONG', value: 'x'.repeat(1024 * 1024) }]
  const large = { ...richPod, spec: { containers: [{ name: 'main', env }] } }
  t.throws(() => referencesOf(podIn('json', large)), { code: 'MALFORMED_BODY' })
})
