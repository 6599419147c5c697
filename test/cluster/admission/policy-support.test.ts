import t from 'tap'
import {
  unsupportedPolicies,
  missingPolicies,
} from '../../../src/cluster/admission/policy-support.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'

const group = '/apis/admissionregistration.k8s.io'

/** Discovery of an API server: which policies each version has; and its webhook configurations. */
function discovery(
  versions: Readonly<Record<string, readonly string[]>>,
  configurations: readonly string[] = [],
): (path: string) => Promise<JsonObject | undefined> {
  const documents: Record<string, JsonObject> = {
    [group]: { versions: Object.keys(versions).map((version) => ({ version })) },
  }
  for (const [version, names] of Object.entries(versions))
    documents[`${group}/${version}`] = { resources: names.map((name) => ({ name })) }
  for (const name of configurations)
    documents[`${group}/v1/mutatingwebhookconfigurations/${name}`] = { metadata: { name } }
  return async (path) => documents[path]
}

const validating = 'validatingadmissionpolicies'
const mutating = 'mutatingadmissionpolicies'

void t.test('policies are missing unless the API serves the installed version', async (t) => {
  const current = discovery({ v1: [validating, mutating], v1beta1: [mutating] })
  t.equal(await unsupportedPolicies(current, 'validating'), undefined)
  t.equal(await unsupportedPolicies(current, 'mutating'), undefined)
  t.equal(
    await unsupportedPolicies(discovery({ v1: [validating] }), 'mutating'),
    'the API server serves no MutatingAdmissionPolicy v1 (Kubernetes 1.36 or later)',
  )
  t.equal(
    await unsupportedPolicies(
      discovery({ v1: [validating], v1beta1: [mutating], v1alpha1: [mutating] }),
      'mutating',
    ),
    'the API server serves no MutatingAdmissionPolicy v1 (Kubernetes 1.36 or later), but v1beta1, v1alpha1',
  )
  await t.rejects(
    unsupportedPolicies(() => Promise.reject(new Error('no answer')), 'mutating'),
    { message: 'no answer' },
    'an API server that does not say is not one that has none',
  )
})

void t.test('an installation misses mutating policies only where it has no webhooks', async (t) => {
  const before = { v1: [validating] }
  t.strictSame(await missingPolicies(discovery(before, ['nodehub-cluster']), 'nodehub-cluster'), [])
  t.strictSame(await missingPolicies(discovery({ v1: [validating, mutating] }), 'a'), [])
  t.match(await missingPolicies(discovery(before, ['others']), 'nodehub-cluster'), [
    /no MutatingAdmissionPolicy v1 .*no MutatingWebhookConfiguration nodehub-cluster.*--admission=webhooks/,
  ])
  t.match(await missingPolicies(discovery({ v1: [] }, ['a']), 'a'), [
    /no ValidatingAdmissionPolicy v1 \(Kubernetes 1\.30 or later\)/,
  ])
})
