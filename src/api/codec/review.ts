import type { GVK } from '../kube/gvk.ts'
import { isList, isObject, type Json, type JsonObject } from '../kube/json.ts'
import { objectAt, textAt } from '../kube/json-at.ts'
import type { Encoding } from '../kube/media-type.ts'
import type { ApiObject } from '../kube/object.ts'
import { MalformedBody } from './malformed-body.ts'
import { jsonOfObject } from './members.ts'

/** A question to the API server about a token or a right, which changes nothing. */
export interface Review {
  readonly kind: string
  readonly spec: JsonObject
  readonly status: JsonObject
}

interface Read {
  readonly encoding: Encoding
  readonly gvk: GVK
  readonly object: ApiObject
}

/** A review or its answer; `undefined` for another kind. Throws `MalformedBody`. */
export function reviewIn({ encoding, gvk, object }: Read): Review | undefined {
  const isKnown = Object.hasOwn(specs, gvk.kind) && specs[gvk.kind]?.group === gvk.group
  if (!isKnown || gvk.version !== 'v1') return undefined
  const json = jsonOf({ encoding, gvk, object })
  return { kind: gvk.kind, spec: objectAt(json, 'spec'), status: objectAt(json, 'status') }
}

function jsonOf({ encoding, gvk, object }: Read): JsonObject {
  try {
    return jsonOfObject(encoding, gvk, object)
  } catch (cause) {
    if (cause instanceof MalformedBody) throw cause
    throw new MalformedBody('the review cannot be read', { cause })
  }
}

/** The token that a TokenReview is to authenticate; '' in other reviews. */
export const tokenOf = ({ kind, spec }: Review): string =>
  kind === 'TokenReview' ? textAt(spec, 'token') : ''

/**
 * One text for specs that mean the same, in whatever encoding: it may contain a token. `undefined`
 * for a spec with a member that the hub does not know, on which the answer may depend.
 */
export function canonicalSpec({ kind, spec }: Review): string | undefined {
  const members = specs[kind]?.members
  const canonical = members && canonicalOf(spec, members)
  return canonical === undefined || canonical === unfit ? undefined : JSON.stringify(canonical)
}

/** What a member may be; `set`: texts, of which order and number do not matter. */
type Shape = 'text' | 'set' | 'sets' | Members | readonly [Members]

interface Members {
  readonly [name: string]: Shape
}

const requirement = { key: 'text', operator: 'text', values: 'set' } as const
const selector: Members = { rawSelector: 'text', requirements: [requirement] }
const attributes: Members = {
  resourceAttributes: {
    namespace: 'text',
    verb: 'text',
    group: 'text',
    version: 'text',
    resource: 'text',
    subresource: 'text',
    name: 'text',
    fieldSelector: selector,
    labelSelector: selector,
  },
  nonResourceAttributes: { path: 'text', verb: 'text' },
}
const ofUser: Members = { ...attributes, user: 'text', uid: 'text', groups: 'set', extra: 'sets' }
const authorization = 'authorization.k8s.io'

const specs: Readonly<Record<string, { readonly group: string; readonly members: Members }>> = {
  SubjectAccessReview: { group: authorization, members: ofUser },
  LocalSubjectAccessReview: { group: authorization, members: ofUser },
  SelfSubjectAccessReview: { group: authorization, members: attributes },
  TokenReview: {
    group: 'authentication.k8s.io',
    members: { token: 'text', audiences: 'set' },
  },
}

const unfit = Symbol('a value that no API server accepts, or of a member that is not known')

/** `undefined` for what is empty, as if it were absent: but an empty object is one. */
function canonicalOf(value: Json | undefined, shape: Shape): Json | undefined | typeof unfit {
  if (value === undefined || value === null) return undefined
  if (shape === 'text') return typeof value === 'string' ? value || undefined : unfit
  if (shape === 'set') return canonicalSet(value)
  if (shape === 'sets') return isObject(value) ? canonicalSets(value) : unfit
  if (isShapes(shape)) return isList(value) ? canonicalList(value, shape[0]) : unfit
  return isObject(value) ? canonicalMembers(value, shape) : unfit
}

const isShapes = (shape: Members | readonly [Members]): shape is readonly [Members] =>
  Array.isArray(shape)

function canonicalSet(value: Json): Json | undefined | typeof unfit {
  if (!isList(value) || !value.every((each) => typeof each === 'string')) return unfit
  return value.length === 0 ? undefined : [...new Set(value)].toSorted()
}

function canonicalSets(value: JsonObject): Json | undefined | typeof unfit {
  const entries: Json[] = []
  for (const name of Object.keys(value).toSorted()) {
    const set = canonicalOf(value[name], 'set')
    if (set === unfit) return unfit
    entries.push([name, set ?? []])
  }
  return entries.length === 0 ? undefined : entries
}

function canonicalList(value: readonly Json[], members: Members): Json | undefined | typeof unfit {
  const items: Json[] = []
  for (const each of value) {
    const item = canonicalOf(each, members)
    if (item === unfit) return unfit
    items.push(item ?? {})
  }
  return items.length === 0 ? undefined : items
}

function canonicalMembers(value: JsonObject, members: Members): Json | typeof unfit {
  if (!Object.keys(value).every((name) => Object.hasOwn(members, name))) return unfit
  const entries: [string, Json][] = []
  for (const [name, shape] of Object.entries(members)) {
    const member = canonicalOf(Object.hasOwn(value, name) ? value[name] : undefined, shape)
    if (member === unfit) return unfit
    if (member !== undefined) entries.push([name, member])
  }
  return Object.fromEntries(entries)
}
