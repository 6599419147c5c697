import {
  allowed,
  noOpinion,
  type Attributes,
  type Authorizer,
  type ResourceAttributes,
  type UserInfo,
} from './attributes.ts'
import type { Binding, PolicyRule, Subject } from './rbac-policy.ts'

/** All of a cluster's policies. Roles by `namespace/name`, ClusterRoles by name. */
export interface Policies {
  readonly roles: ReadonlyMap<string, readonly PolicyRule[]>
  readonly clusterRoles: ReadonlyMap<string, readonly PolicyRule[]>
  readonly roleBindings: Iterable<Binding>
  readonly clusterRoleBindings: Iterable<Binding>
}

/**
 * Decides as the API server's RBAC authorizer (k/k plugin/pkg/auth/authorizer/rbac,
 * pkg/registry/rbac/validation). It has an opinion only where a rule allows the request. The
 * bindings are read once and found by their subjects, of which a user has few.
 */
export function rbacAuthorizer(policies: Policies): Authorizer {
  const { roles, clusterRoles } = policies
  const bindings = bindingsBySubject([...policies.clusterRoleBindings, ...policies.roleBindings])
  return (user, attributes) => {
    const missing = new Set<string>()
    for (const { binding, subject } of applying(user, attributes, bindings)) {
      const { kind, name } = binding.roleRef
      // A ClusterRoleBinding has no namespace, and so no Role.
      const rules =
        kind === 'Role' && binding.namespace !== ''
          ? roles.get(`${binding.namespace}/${name}`)
          : kind === 'ClusterRole'
            ? clusterRoles.get(name)
            : undefined
      if (rules?.some((rule) => ruleAllows(rule, attributes))) {
        return allowed(`RBAC: allowed by ${describe(binding, subject)}`)
      }
      if (!rules) missing.add(notFound(kind, name))
    }
    return noOpinion(missing.size === 0 ? '' : `RBAC: ${aggregate([...missing])}`)
  }
}

/** Whether one of the rules allows the request, for any user. */
export const rulesAllow = (rules: readonly PolicyRule[], attributes: Attributes): boolean =>
  rules.some((rule) => ruleAllows(rule, attributes))

interface BoundSubject {
  readonly binding: Binding
  readonly subject: Subject
}

/** By `subjectKey`. */
type BindingsBySubject = ReadonlyMap<string, readonly BoundSubject[]>

/** The namespace of a ClusterRoleBinding is ''. */
const subjectKey = (namespace: string, kind: 'User' | 'Group', name: string): string =>
  JSON.stringify([namespace, kind, name])

function bindingsBySubject(bindings: Iterable<Binding>): BindingsBySubject {
  const bySubject = new Map<string, BoundSubject[]>()
  for (const binding of bindings) {
    for (const subject of binding.subjects) {
      const key = keyOf(subject, binding.namespace)
      if (key === undefined) continue
      const there = bySubject.get(key)
      if (there) there.push({ binding, subject })
      else bySubject.set(key, [{ binding, subject }])
    }
  }
  return bySubject
}

/** `undefined` for a service account without a namespace, which matches no user. */
function keyOf({ kind, name, namespace }: Subject, ofBinding: string): string | undefined {
  if (kind !== 'ServiceAccount') return subjectKey(ofBinding, kind, name)
  const account = namespace || ofBinding
  if (account === '') return undefined
  return subjectKey(ofBinding, 'User', `system:serviceaccount:${account}:${name}`)
}

/** The bindings that apply to a user: of the whole cluster, then of the request's namespace. */
function* applying(
  { name, groups }: UserInfo,
  attributes: Attributes,
  bindings: BindingsBySubject,
): Generator<BoundSubject> {
  const scopes = attributes.isResource && attributes.namespace !== '' ? [attributes.namespace] : []
  for (const scope of ['', ...scopes]) {
    yield* bindings.get(subjectKey(scope, 'User', name)) ?? []
    for (const group of groups) yield* bindings.get(subjectKey(scope, 'Group', group)) ?? []
  }
}

function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!hasOrAll(rule.verbs, attributes.verb)) return false
  if (!attributes.isResource) {
    return rule.nonResourceURLs.some((url) => matchesPath(url, attributes.path))
  }
  return (
    hasOrAll(rule.apiGroups, attributes.group) &&
    rule.resources.some((resource) => matchesResource(resource, attributes)) &&
    (rule.resourceNames.length === 0 || rule.resourceNames.includes(attributes.name))
  )
}

const hasOrAll = (values: readonly string[], value: string): boolean =>
  values.includes('*') || values.includes(value)

function matchesResource(allowing: string, { resource, subresource }: ResourceAttributes): boolean {
  if (allowing === '*') return true
  if (subresource === '') return allowing === resource
  return allowing === `${resource}/${subresource}` || allowing === `*/${subresource}`
}

/** All stars at the end count as one, as in the API server. */
function matchesPath(url: string, path: string): boolean {
  if (url === path) return true
  if (!url.endsWith('*')) return false
  let end = url.length
  while (url[end - 1] === '*') end--
  return path.startsWith(url.slice(0, end))
}

// In the words of the API server, of which clients may show one to a person.

function describe({ name, namespace, roleRef }: Binding, subject: Subject): string {
  const role = `${roleRef.kind} ${quoted(roleRef.name)}`
  const scope = namespace === '' ? 'ClusterRoleBinding' : 'RoleBinding'
  const binding = namespace === '' ? name : `${name}/${namespace}`
  const who =
    subject.kind === 'ServiceAccount'
      ? `${subject.name}/${subject.namespace || namespace}`
      : subject.name
  return `${scope} ${quoted(binding)} of ${role} to ${subject.kind} ${quoted(who)}`
}

function notFound(kind: string, name: string): string {
  if (kind !== 'Role' && kind !== 'ClusterRole')
    return `unsupported role reference kind: ${quoted(kind)}`
  return `${kind.toLowerCase()}.rbac.authorization.k8s.io ${quoted(name)} not found`
}

const aggregate = (messages: readonly string[]): string =>
  messages.length === 1 ? String(messages[0]) : `[${messages.join(', ')}]`

const quoted = (text: string): string => JSON.stringify(text)
