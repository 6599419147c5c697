import { isList, isObject, type Json } from '../../api/kube/json.ts'
import { textAt, valueAt } from '../../api/kube/json-at.ts'

/** A rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  /** Empty: all names. */
  readonly resourceNames: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

export interface Subject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly name: string
  /** Of a service account; '': that of its RoleBinding. */
  readonly namespace: string
}

/** A RoleBinding or ClusterRoleBinding. */
export interface Binding {
  readonly name: string
  /** '' for a ClusterRoleBinding. */
  readonly namespace: string
  readonly roleRef: { readonly kind: string; readonly name: string }
  readonly subjects: readonly Subject[]
}

/**
 * The rules of a Role or ClusterRole. Those of an aggregated ClusterRole are in `rules` as well:
 * the controller manager writes them there. A rule with a member of another type is left out as a
 * whole: without its resource names, for one, it would allow more.
 */
export const rulesOf = (role: Json): readonly PolicyRule[] =>
  listOrNone(valueAt(role, 'rules')).flatMap((rule) => {
    if (!isObject(rule)) return []
    const verbs = textsAt(rule, 'verbs')
    const apiGroups = textsAt(rule, 'apiGroups')
    const resources = textsAt(rule, 'resources')
    const resourceNames = textsAt(rule, 'resourceNames')
    const nonResourceURLs = textsAt(rule, 'nonResourceURLs')
    if (!verbs || !apiGroups || !resources || !resourceNames || !nonResourceURLs) return []
    return [{ verbs, apiGroups, resources, resourceNames, nonResourceURLs }]
  })

/** Malformed subjects are left out, and a malformed role reference names no role. */
export const clusterRoleBindingOf = (binding: Json): Binding => bindingIn('', binding)

/** `undefined` for one without a namespace, which would otherwise bind everywhere. */
export function roleBindingOf(binding: Json): Binding | undefined {
  const namespace = textAt(binding, 'metadata', 'namespace')
  return namespace === '' ? undefined : bindingIn(namespace, binding)
}

const bindingIn = (namespace: string, binding: Json): Binding => ({
  name: textAt(binding, 'metadata', 'name'),
  namespace,
  roleRef: { kind: textAt(binding, 'roleRef', 'kind'), name: textAt(binding, 'roleRef', 'name') },
  subjects: listOrNone(valueAt(binding, 'subjects')).flatMap((subject) => {
    const { kind, name, namespace: of = '' } = isObject(subject) ? subject : {}
    if (kind !== 'User' && kind !== 'Group' && kind !== 'ServiceAccount') return []
    if (typeof name !== 'string' || typeof of !== 'string') return []
    return [{ kind, name, namespace: of }]
  }),
})

const listOrNone = (value: Json | undefined): readonly Json[] => (isList(value) ? value : [])

/** `undefined` where the member is neither absent, null nor a list of strings. */
function textsAt(rule: Json, member: string): readonly string[] | undefined {
  const value = valueAt(rule, member) ?? []
  if (!isList(value)) return undefined
  return value.every((each) => typeof each === 'string') ? value : undefined
}
