import { isList, isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import type { Attributes, UserInfo } from './attributes.ts'

/** The question of an access review. */
export interface AccessQuestion {
  /** `undefined` in a SelfSubjectAccessReview: its sender. */
  readonly user: UserInfo | undefined
  readonly attributes: Attributes
}

/**
 * The question in the spec of a SubjectAccessReview, LocalSubjectAccessReview or
 * SelfSubjectAccessReview; `undefined` for a spec that an API server refuses (k/k
 * pkg/apis/authorization/validation, pkg/registry/authorization/util).
 */
export function questionOf(kind: string, spec: JsonObject): AccessQuestion | undefined {
  const attributes = attributesIn(spec)
  if (!attributes) return undefined
  if (kind === 'SelfSubjectAccessReview') return { user: undefined, attributes }
  const { user: name = '', groups } = spec
  const named = groups ?? []
  if (typeof name !== 'string' || !isTexts(named)) return undefined
  return name === '' && named.length === 0
    ? undefined
    : { user: { name, groups: named }, attributes }
}

function attributesIn(spec: JsonObject): Attributes | undefined {
  const resource = spec['resourceAttributes'] ?? undefined
  const path = spec['nonResourceAttributes'] ?? undefined
  if ((resource === undefined) === (path === undefined)) return undefined
  const members = resource ?? path
  if (!isObject(members)) return undefined
  const text = (name: string): string | undefined => {
    const value = members[name] ?? ''
    return typeof value === 'string' ? value : undefined
  }
  const verb = text('verb')
  if (verb === undefined) return undefined
  if (resource === undefined) {
    const requested = text('path')
    return requested === undefined ? undefined : { isResource: false, verb, path: requested }
  }
  const [group, name, subresource, namespace, object] = [
    text('group'),
    text('resource'),
    text('subresource'),
    text('namespace'),
    text('name'),
  ]
  if (
    group === undefined ||
    name === undefined ||
    subresource === undefined ||
    namespace === undefined ||
    object === undefined
  )
    return undefined
  return {
    isResource: true,
    verb,
    group,
    resource: name,
    subresource,
    namespace,
    name: object,
  }
}

const isTexts = (value: Json): value is readonly string[] =>
  isList(value) && value.every((each) => typeof each === 'string')
