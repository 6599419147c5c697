import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'

/**
 * A kind of policies in the one version that is installed, and the first Kubernetes that serves it.
 */
export const policyKinds = {
  validating: {
    kind: 'ValidatingAdmissionPolicy',
    resource: 'validatingadmissionpolicies',
    since: '1.30',
  },
  mutating: {
    kind: 'MutatingAdmissionPolicy',
    resource: 'mutatingadmissionpolicies',
    since: '1.36',
  },
} as const

type PolicyKind = keyof typeof policyKinds

const group = '/apis/admissionregistration.k8s.io'

const installedVersion = 'v1'

/** Reads a document of discovery; `undefined` where the API server has none there. */
export type Discover = (path: string) => Promise<JsonObject | undefined>

/**
 * Why the policies of this kind cannot be installed, according to discovery; `undefined` if they
 * can. Rejects where discovery cannot be read.
 */
export async function unsupportedPolicies(
  discover: Discover,
  kind: PolicyKind,
): Promise<string | undefined> {
  const wanted = policyKinds[kind]
  const versions = listAt(await discover(group), 'versions').map((each) => textAt(each, 'version'))
  const served: string[] = []
  for (const version of versions) {
    const resources = listAt(await discover(`${group}/${version}`), 'resources')
    if (resources.some((each) => textAt(each, 'name') === wanted.resource)) served.push(version)
  }
  if (served.includes(installedVersion)) return undefined
  const instead = served.length === 0 ? '' : `, but ${served.join(', ')}`
  return `the API server serves no ${wanted.kind} ${installedVersion} (Kubernetes ${wanted.since} or later)${instead}`
}

/**
 * The policies that an installation misses since the API server does not take them, a line each
 * with the remedy; none where all are there. `webhooks` is the name of the webhook configurations,
 * without which nodes and pods are left to policies.
 */
export async function missingPolicies(discover: Discover, webhooks: string): Promise<string[]> {
  const lines: string[] = []
  const validating = await unsupportedPolicies(discover, 'validating')
  if (validating !== undefined)
    lines.push(
      `${validating}: while no webhook answers, nothing keeps the rules for nodes and pools; use a Kubernetes that has it`,
    )
  const mutating = await unsupportedPolicies(discover, 'mutating')
  if (
    mutating !== undefined &&
    (await discover(`${group}/v1/mutatingwebhookconfigurations/${webhooks}`)) === undefined
  )
    lines.push(
      `${mutating}, and there is no MutatingWebhookConfiguration ${webhooks}: new nodes and pods are neither changed nor checked by their pools; ` +
        'apply what nodehub manifests --part cluster --admission=webhooks prints',
    )
  return lines
}
