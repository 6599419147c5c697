import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { textAt } from '../../../src/api/kube/json-at.ts'
import { namespacedName } from '../../../src/api/kube/object.ts'
import {
  privilegedGroup,
  union,
  type Attributes,
  type Authorizer,
} from '../../../src/hub/authorization/attributes.ts'
import {
  clusterRoleBindingOf,
  roleBindingOf,
  rulesOf,
} from '../../../src/hub/authorization/rbac-policy.ts'
import { rbacAuthorizer } from '../../../src/hub/authorization/rbac-authorizer.ts'
import { nodeAuthorizer, type IsRelated } from '../../../src/hub/authorization/node-authorizer.ts'
import { questionOf } from '../../../src/hub/authorization/review.ts'

const isOfKind =
  (kind: string) =>
  (object: Json): boolean =>
    textAt(object, 'kind') === kind

/** An RBAC authorizer over RBAC objects of all four kinds. */
export function authorizerOf(objects: readonly Json[]): Authorizer {
  const named = (kind: string) =>
    new Map(
      objects.filter(isOfKind(kind)).map((object) => {
        const [namespace, name] = [
          textAt(object, 'metadata', 'namespace'),
          textAt(object, 'metadata', 'name'),
        ]
        return [namespacedName({ namespace, name }), rulesOf(object)] as const
      }),
    )
  return rbacAuthorizer({
    roles: named('Role'),
    clusterRoles: named('ClusterRole'),
    roleBindings: objects
      .filter(isOfKind('RoleBinding'))
      .flatMap((object) => roleBindingOf(object) ?? []),
    clusterRoleBindings: objects.filter(isOfKind('ClusterRoleBinding')).map(clusterRoleBindingOf),
  })
}

/** The authorizers of a kube-apiserver with `--authorization-mode=Node,RBAC`, in their order. */
export const apiServerAuthorizer = (
  objects: readonly Json[],
  isRelated: IsRelated,
  minor: number,
): Authorizer =>
  union(
    privilegedGroup,
    nodeAuthorizer(isRelated, () => minor),
    authorizerOf(objects),
  )

/** What the hub would answer to a SubjectAccessReview with this spec. */
export function answerTo(
  authorize: Authorizer,
  spec: JsonObject,
): ReturnType<Authorizer>['kind'] | 'refused' {
  const question = questionOf('SubjectAccessReview', spec)
  return question?.user ? authorize(question.user, question.attributes).kind : 'refused'
}

const metadata = (name: string, namespace?: string): JsonObject => ({
  name,
  ...(namespace !== undefined && { namespace }),
})

export interface Rule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/** A Role where it has a namespace, else a ClusterRole. */
export const roleOf = (name: string, rules: readonly Rule[], namespace?: string): JsonObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: namespace === undefined ? 'ClusterRole' : 'Role',
  metadata: metadata(name, namespace),
  rules: rules.map((rule) => ({ ...rule })),
})

export interface SubjectOf {
  readonly kind: string
  readonly name: string
  readonly namespace?: string
}

/** A RoleBinding where it has a namespace, else a ClusterRoleBinding. */
export const bindingTo = (
  name: string,
  role: { readonly kind: string; readonly name: string },
  subjects: readonly SubjectOf[],
  namespace?: string,
): JsonObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: metadata(name, namespace),
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...role },
  subjects: subjects.map((subject) => ({
    ...(subject.kind !== 'ServiceAccount' && { apiGroup: 'rbac.authorization.k8s.io' }),
    ...subject,
  })),
})

/** A request for a resource: `verb resource.group/subresource namespace/name`. */
export function toDo(text: string): Attributes {
  const [verb = '', what = '', where = ''] = text.split(' ')
  if (what.startsWith('/')) return { isResource: false, verb, path: what }
  const [qualified = '', subresource = ''] = what.split('/')
  const [resource = '', ...group] = qualified.split('.')
  const [namespace = '', name = ''] = where.split('/')
  return {
    isResource: true,
    verb,
    group: group.join('.'),
    resource,
    subresource,
    namespace,
    name,
    fieldSelector: [],
  }
}

/** The names of pods' secrets, config maps and so on, for a fake of what a node is related to. */
export const relatedTo =
  (node: string, ...objects: readonly string[]): IsRelated =>
  (name, resource, object) =>
    name === node && objects.includes(`${resource} ${object.namespace}/${object.name}`)
