import type { TokenSpec } from '../../api/codec/token-request.ts'
import type { GVR } from '../../api/kube/gvk.ts'

/**
 * The resource under which answers to token requests are stored, in the namespace of the service
 * account. Their bodies are sealed (`log/bodies.ts`).
 */
export const tokenResource: GVR = { group: '', version: 'v1', resource: 'serviceaccounts/token' }

/** The part of a token request on which its answer depends, without the namespace. */
export interface NamedTokenSpec extends TokenSpec {
  readonly serviceAccount: string
}

const defaultSeconds = 3600

/**
 * The name under which the answer to a token request is stored: the same for requests that mean the
 * same. It contains nothing secret.
 */
export function tokenName({
  serviceAccount,
  audiences,
  expirationSeconds = defaultSeconds,
  boundObject,
}: NamedTokenSpec): string {
  const bound = boundObject ? [boundObject.kind, boundObject.name, boundObject.uid] : []
  return JSON.stringify([
    serviceAccount,
    bound,
    expirationSeconds,
    [...new Set(audiences)].toSorted(),
  ])
}
