import type { GVR } from '../../src/kube/gvk.ts'
import type { JsonObject } from '../../src/kube/json.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { customResources } from './cluster-api.ts'

const kindOf = (kind: string): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${kind.toLowerCase()}s.admissionregistration.k8s.io` },
  spec: {
    group: 'admissionregistration.k8s.io',
    names: { kind, plural: `${kind.toLowerCase()}s`, singular: kind.toLowerCase() },
    scope: 'Cluster',
    versions: [{ name: 'v1', served: true, storage: true }],
  },
})

const resource = (name: string): GVR => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource: name,
})

export const mutatingConfigurations = resource('mutatingwebhookconfigurations')
export const validatingConfigurations = resource('validatingwebhookconfigurations')

/** Webhook configurations for an API server in memory, which asks no webhook. */
export function defineAdmissionKinds(sandbox: Sandbox): void {
  for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'])
    sandbox.create(customResources, kindOf(kind))
}
