import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'

export const customResources: GVR = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
}

const kindOf = (kind: string, plural = `${kind.toLowerCase()}s`): JsonObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.admissionregistration.k8s.io` },
  spec: {
    group: 'admissionregistration.k8s.io',
    names: { kind, plural, singular: kind.toLowerCase() },
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
