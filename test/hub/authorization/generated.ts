import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../../src/api/kube/json-at.ts'
import type { Random } from '../../fuzz/random.ts'
import { bindingTo, roleOf, type Rule, type SubjectOf } from './policies.ts'

/** Namespaces, users and groups of one round, that no other round has. */
export interface Cast {
  readonly namespaces: readonly string[]
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

export const castOf = (round: number): Cast => ({
  namespaces: [`n${round}-a`, `n${round}-b`],
  users: [`u${round}-a`, `u${round}-b`, `system:serviceaccount:n${round}-a:robot`],
  groups: [`g${round}-a`, `g${round}-b`, `system:serviceaccounts:n${round}-a`],
})

const apiGroups = ['', '', '', 'apps', 'example.com', '*']
const kinds = ['pods', 'configmaps', 'deployments']
const subresources = ['log', 'scale']
const resources = [
  ...kinds,
  ...kinds.flatMap((kind) => subresources.map((each) => `${kind}/${each}`)),
  ...subresources.map((each) => `*/${each}`),
  'pods/*',
  'po*',
  ...kinds,
  '*',
  '*',
]
const verbs = ['get', 'get', 'list', 'update', 'delete', 'use', 'ge*', '*', '*']
const names = ['', 'one', 'two', 'three', '*']
const paths = ['/metrics', '/logs', '/logs/a', '/logs/a/b', '/api', '/', '/*']
const urls = ['/metrics', '/logs/*', '/logs/a', '/logs/a*', '/l*', '/logs**', '*']

const some = <T>(random: Random, from: readonly T[], most = 3): readonly T[] =>
  Array.from({ length: 1 + random.below(most) }, () => random.of(from))

/** A rule that an API server accepts. */
function ruleOf(random: Random, isOfCluster: boolean): Rule {
  if (isOfCluster && random.once(4)) {
    return { verbs: some(random, verbs), nonResourceURLs: some(random, urls) }
  }
  return {
    verbs: some(random, verbs),
    apiGroups: some(random, apiGroups, 2),
    resources: some(random, resources),
    ...(random.once(3) && { resourceNames: some(random, names.slice(1), 2) }),
  }
}

function subjectOf(random: Random, { namespaces, users, groups }: Cast): SubjectOf {
  switch (random.below(4)) {
    case 0:
      return { kind: 'User', name: random.of(users) }
    case 1:
      return { kind: 'Group', name: random.of(groups) }
    default:
      return {
        kind: 'ServiceAccount',
        name: random.of(['robot', 'other']),
        namespace: random.of(namespaces),
      }
  }
}

const roleNames = ['r0', 'r1', 'r2']

/** Roles and bindings of all kinds, some of which refer to roles that there are not. */
export function policiesOf(random: Random, round: number): readonly JsonObject[] {
  const cast = castOf(round)
  const rules = (isOfCluster: boolean): readonly Rule[] =>
    Array.from({ length: random.below(4) }, () => ruleOf(random, isOfCluster))
  const ofCluster = roleNames.map((name) => roleOf(`c${round}-${name}`, rules(true)))
  const ofNamespaces = cast.namespaces.flatMap((namespace) =>
    roleNames.map((name) => roleOf(name, rules(false), namespace)),
  )
  const clusterRole = () => ({
    kind: 'ClusterRole',
    name: `c${round}-${random.of([...roleNames, ...roleNames, 'gone'])}`,
  })
  const role = () => ({ kind: 'Role', name: random.of([...roleNames, ...roleNames, 'gone']) })
  const subjects = (): readonly SubjectOf[] =>
    Array.from({ length: random.below(5) }, () => subjectOf(random, cast))
  const bindings = Array.from({ length: 16 }, (_, at) => {
    const name = `b${round}-${at}`
    if (random.once(3)) return bindingTo(name, clusterRole(), subjects())
    const to = random.once(2) ? clusterRole() : role()
    return bindingTo(name, to, subjects(), random.of(cast.namespaces))
  })
  return [...ofCluster, ...ofNamespaces, ...bindings]
}

/** One role with one rule, and one binding of it. */
export function grantOf(random: Random, round: number): readonly JsonObject[] {
  const cast = castOf(round)
  const namespace = random.once(2) ? undefined : random.of(cast.namespaces)
  const kind = namespace === undefined ? 'ClusterRole' : 'Role'
  return [
    roleOf('r', [ruleOf(random, namespace === undefined)], namespace),
    bindingTo('b', { kind, name: 'r' }, [subjectOf(random, cast)], namespace),
  ]
}

/** Questions of all users of a round, by which one rule differs from a wider one. */
export const questionsOf = (round: number): readonly JsonObject[] => {
  const { namespaces, users, groups } = castOf(round)
  return users.flatMap((user) =>
    ['get', 'list'].flatMap((verb) => [
      ...['/metrics', '/logs/a'].map((path) => ({
        user,
        nonResourceAttributes: { verb, path },
      })),
      ...[...namespaces, ''].flatMap((namespace) =>
        ['pods', 'deployments'].flatMap((resource) =>
          ['', 'scale'].flatMap((subresource) =>
            ['', 'one', 'two'].map((name) => ({
              user,
              groups,
              resourceAttributes: { verb, group: '', resource, subresource, namespace, name },
            })),
          ),
        ),
      ),
    ]),
  )
}

/**
 * The spec of a SubjectAccessReview about the cast of a round: half of them near to what one of the
 * policies grants.
 */
export function questionFor(
  random: Random,
  round: number,
  policies: readonly JsonObject[],
): JsonObject {
  const far = farQuestion(random, round)
  return random.once(2) ? far : nearQuestion(random, policies, far)
}

/** What a binding grants to one of its subjects, or `far` with a part of that. */
function nearQuestion(
  random: Random,
  policies: readonly JsonObject[],
  far: JsonObject,
): JsonObject {
  const binding = random.of(policies.filter((each) => 'roleRef' in each))
  const namespace = textAt(binding, 'metadata', 'namespace')
  const subjects = listAt(binding, 'subjects')
  const role = policies.find(
    (each) =>
      textAt(each, 'kind') === textAt(binding, 'roleRef', 'kind') &&
      textAt(each, 'metadata', 'name') === textAt(binding, 'roleRef', 'name') &&
      [namespace, ''].includes(textAt(each, 'metadata', 'namespace')),
  )
  const rules = listAt(role, 'rules')
  if (subjects.length === 0 || rules.length === 0) return far
  const rule = random.of(rules)
  const one = (member: string): string => textAt({ of: random.of(listAt(rule, member)) }, 'of')
  const who = userOf(random.of(subjects))
  const verb = one('verbs')
  if (listAt(rule, 'nonResourceURLs').length > 0) {
    return { ...who, nonResourceAttributes: { verb, path: one('nonResourceURLs') } }
  }
  const [resource = '', subresource = ''] = one('resources').split('/')
  const near = {
    verb,
    group: one('apiGroups'),
    resource,
    subresource,
    namespace,
    name: listAt(rule, 'resourceNames').length > 0 ? one('resourceNames') : '',
  }
  const others = objectAt(far, 'resourceAttributes')
  const changed = random.of(['nothing', 'nothing', ...Object.keys(near)])
  const change = changed in others ? { [changed]: others[changed] ?? '' } : {}
  return { ...who, resourceAttributes: { ...near, ...change } }
}

/** The user of a review, as a subject of a binding. */
function userOf(subject: Json): { readonly user: string; readonly groups: readonly string[] } {
  const [kind, name] = [textAt(subject, 'kind'), textAt(subject, 'name')]
  if (kind === 'User') return { user: name, groups: [] }
  if (kind === 'Group') return { user: 'nobody', groups: ['system:authenticated', name] }
  const namespace = textAt(subject, 'namespace')
  return { user: `system:serviceaccount:${namespace}:${name}`, groups: [] }
}

function farQuestion(random: Random, round: number): JsonObject {
  const { namespaces, users, groups } = castOf(round)
  const who = {
    user: random.of([...users, 'nobody', 'system:anonymous']),
    ...(random.once(2) && {
      groups: some(random, [...groups, 'system:authenticated', 'system:unauthenticated']),
    }),
    ...(random.once(100) && { groups: ['system:masters'] }),
  }
  if (random.once(5)) {
    return {
      ...who,
      nonResourceAttributes: { path: random.of(paths), verb: random.of(verbs) },
    }
  }
  const subresource = random.once(3) ? random.of([...subresources, '*']) : ''
  return {
    ...who,
    resourceAttributes: {
      verb: random.of(verbs),
      group: random.of(apiGroups),
      resource: random.of(random.once(8) ? resources : kinds),
      ...(subresource !== '' && { subresource }),
      namespace: random.of([...namespaces, ...namespaces, '', 'kube-system']),
      name: random.of(names),
    },
  }
}

const nodeUsers = ['system:node:edge-1', 'system:node:edge-2', 'system:node:', 'edge-1']

/** What a node's authorizer looks at, by resource. */
const ofNodes: readonly (readonly [string, string, readonly string[]])[] = [
  ['', 'secrets', ['env', 'volume', 'other']],
  ['', 'configmaps', ['env', 'volume', 'other']],
  ['', 'persistentvolumeclaims', ['data', 'other']],
  ['', 'persistentvolumes', ['data', 'other']],
  ['', 'serviceaccounts', ['robot', 'other']],
  ['', 'pods', ['press', 'mirror', 'other']],
  ['', 'nodes', ['edge-1', 'edge-2']],
  ['', 'services', ['a']],
  ['', 'events', ['a']],
  ['', 'endpoints', ['a']],
  ['coordination.k8s.io', 'leases', ['edge-1', 'edge-2']],
  ['storage.k8s.io', 'csinodes', ['edge-1', 'edge-2']],
  ['storage.k8s.io', 'csidrivers', ['a']],
  ['storage.k8s.io', 'volumeattachments', ['mine', 'another']],
  ['resource.k8s.io', 'resourceclaims', ['camera', 'other']],
  ['resource.k8s.io', 'resourceslices', ['a']],
  ['node.k8s.io', 'runtimeclasses', ['a']],
  ['certificates.k8s.io', 'certificatesigningrequests', ['a']],
  ['certificates.k8s.io', 'clustertrustbundles', ['a']],
  ['certificates.k8s.io', 'podcertificaterequests', ['a']],
  ['authentication.k8s.io', 'tokenreviews', ['a']],
  ['authorization.k8s.io', 'subjectaccessreviews', ['a']],
]

const nodeVerbs = 'get list watch create update patch delete deletecollection use'.split(' ')

/** The spec of a SubjectAccessReview about a node. */
export function nodeQuestion(random: Random, namespace: string): JsonObject {
  const [group, resource, objects] = random.of(ofNodes)
  const selector = random.once(4)
    ? { rawSelector: `spec.nodeName=${random.of(['edge-1', 'edge-2'])}` }
    : undefined
  return {
    user: random.of([...nodeUsers, 'system:node:edge-1', 'system:node:edge-1']),
    groups: random.once(10) ? ['system:authenticated'] : ['system:nodes', 'system:authenticated'],
    resourceAttributes: {
      verb: random.of(nodeVerbs),
      group,
      resource,
      subresource: random.once(4) ? random.of(['status', 'token', 'eviction', 'proxy']) : '',
      namespace: random.of([namespace, namespace, '', 'kube-node-lease']),
      name: random.of([...objects, ...objects, '']),
      ...(selector && { fieldSelector: selector }),
    },
  }
}
