import type { TokenSpec } from '../../api/codec/token-request.ts'
import type { GVR } from '../../api/kube/gvk.ts'

/**
 * Under which the answers to token requests are kept, in the namespace of the service account;
 * sealed (`sqlite/seal.ts`).
 */
export const tokenResource: GVR = { group: '', version: 'v1', resource: 'serviceaccounts/token' }

/** All that the answer to a token request depends on, but the namespace. */
export interface NamedTokenSpec extends TokenSpec {
  readonly serviceAccount: string
}

const defaultSeconds = 3600

/**
 * The name under which the answer to a token request is kept: the same for requests that mean the
 * same. It says nothing of the token, and may be shown.
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

/** The pod that the token of this name lives with; `undefined` where it lives with none. */
export function podOfToken(
  name: string,
): { readonly name: string; readonly uid: string } | undefined {
  const [, [kind, pod = '', uid = '']] = JSON.parse(name) as [string, string[]]
  return kind === 'Pod' ? { name: pod, uid } : undefined
}
