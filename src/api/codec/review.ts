import type { JsonObject } from '../kube/json.ts'
import { objectAt, textAt } from '../kube/json-at.ts'
import type { EncodedObject } from './object.ts'
import { jsonOfObject } from './members.ts'

/** A question to the API server about a token or a right, which changes nothing. */
export interface Review {
  readonly kind: string
  readonly spec: JsonObject
  readonly status: JsonObject
  /** As it was sent: an API server may know more of a spec than the hub. */
  readonly bytes: Uint8Array
}

const groups: Readonly<Record<string, string>> = {
  SubjectAccessReview: 'authorization.k8s.io',
  LocalSubjectAccessReview: 'authorization.k8s.io',
  SelfSubjectAccessReview: 'authorization.k8s.io',
  TokenReview: 'authentication.k8s.io',
}

/** A review or its answer; `undefined` for another kind. Throws `MalformedBody`. */
export function reviewIn({ encoding, gvk, object }: EncodedObject): Review | undefined {
  const { group, version, kind } = gvk
  const isKnown = Object.hasOwn(groups, kind) && groups[kind] === group && version === 'v1'
  if (!isKnown) return undefined
  const json = jsonOfObject(encoding, gvk, object)
  const { bytes } = object
  return { kind, spec: objectAt(json, 'spec'), status: objectAt(json, 'status'), bytes }
}

/** The token that a TokenReview is to authenticate; '' in other reviews. */
export const tokenOf = ({ kind, spec }: Review): string =>
  kind === 'TokenReview' ? textAt(spec, 'token') : ''
