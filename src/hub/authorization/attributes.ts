import type { FieldRequirement } from '../../api/kube/selectors.ts'

/** A user as an authorizer sees it (apiserver pkg/authentication/user). */
export interface UserInfo {
  readonly name: string
  readonly groups: readonly string[]
}

/** The action that a user requests (apiserver pkg/authorization/authorizer, Attributes). */
export type Attributes = ResourceAttributes | NonResourceAttributes

export interface ResourceAttributes {
  readonly isResource: true
  readonly verb: string
  readonly group: string
  readonly resource: string
  /** These are '' where the request has none. */
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly fieldSelector: readonly FieldRequirement[]
}

export interface NonResourceAttributes {
  readonly isResource: false
  readonly verb: string
  readonly path: string
}

/**
 * The decision of an authorizer. `no-opinion`: it does not allow the request, and another one may.
 * `unknown`: the hub lacks data that the decision depends on.
 */
export type Decision =
  | { readonly kind: 'allowed' | 'no-opinion'; readonly reason: string }
  | { readonly kind: 'unknown' }

export const unknown: Decision = { kind: 'unknown' }
export const noOpinion = (reason = ''): Decision => ({ kind: 'no-opinion', reason })
export const allowed = (reason = ''): Decision => ({ kind: 'allowed', reason })

export type Authorizer = (user: UserInfo, attributes: Attributes) => Decision

/**
 * The first authorizer that allows a request decides. Where none does and one of them lacks data
 * that its decision depends on, the request is neither allowed nor denied.
 */
export const union =
  (...authorizers: readonly Authorizer[]): Authorizer =>
  (user, attributes) => {
    const decisions: Decision[] = []
    for (const authorize of authorizers) {
      const decision = authorize(user, attributes)
      if (decision.kind === 'allowed') return decision
      decisions.push(decision)
    }
    const reasons: string[] = []
    for (const decision of decisions) {
      if (decision.kind === 'unknown') return unknown
      if (decision.reason !== '') reasons.push(decision.reason)
    }
    return noOpinion(reasons.join('\n'))
  }

/** The group that kube-apiserver allows everything before it calls any authorizer. */
export const privilegedGroup: Authorizer = ({ groups }) =>
  groups.includes('system:masters') ? allowed() : noOpinion()
