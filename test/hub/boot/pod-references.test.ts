import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { KnownPodReferences } from '../../../src/hub/boot/pod-references.ts'
import { encoded, podKind, richPod } from './rich-pod.ts'

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `a pod's spec is parsed once, whatever its status becomes (${encoding})`,
    async (t) => {
      const known = new KnownPodReferences()
      const status = richPod['status'] as JsonObject
      const at = (resourceVersion: string, changes: JsonObject = {}) => {
        const metadata = { ...(richPod['metadata'] as JsonObject), resourceVersion }
        const pod = { ...richPod, metadata, status, ...changes }
        const { gvk, object } = encoded(encoding, podKind, pod)
        return known.of(object, { encoding, gvk })
      }
      const { references } = at('7')
      t.equal(at('8', { status: { ...status, podIP: '10.0.0.9' } }).references, references)
      const ended = at('9', { status: { ...status, phase: 'Succeeded' } })
      t.equal(ended.startsAtBoot, false)
      t.match(at('10', { spec: { serviceAccountName: 'other' } }).references, {
        serviceAccount: 'other',
      })
      const claims = { resourceClaimStatuses: [{ name: 'lamp', resourceClaimName: 'another' }] }
      const remade = at('11', { status: { ...status, ...claims } }).references
      t.ok('objects' in remade && remade.objects.some(({ name }) => name === 'another'))
    },
  )
}
