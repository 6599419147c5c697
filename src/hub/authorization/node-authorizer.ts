import {
  allowed,
  noOpinion,
  unknown,
  type Authorizer,
  type Decision,
  type ResourceAttributes,
} from './attributes.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { PolicyRule } from './rbac-policy.ts'
import { rulesAllow } from './rbac-authorizer.ts'

/** The resources of which a node may read the objects that its pods lead to. */
export type RelatedResource =
  | 'secrets'
  | 'configmaps'
  | 'persistentvolumeclaims'
  | 'persistentvolumes'
  | 'serviceaccounts'
  | 'pods'
  | 'resourceclaims.resource.k8s.io'
  | 'resourceslices.resource.k8s.io'
  | 'volumeattachments.storage.k8s.io'

/**
 * Whether an object is related to a node: named by one of its pods, by what those lead to, or made
 * for the node. `undefined`: not known.
 */
export type IsRelated = (
  nodeName: string,
  resource: RelatedResource,
  object: { readonly namespace: string; readonly name: string },
) => boolean | undefined

/**
 * Decides what a node may do as the API server's Node authorizer (k/k
 * plugin/pkg/auth/authorizer/node) of Kubernetes 1.`minor`. The decision is `unknown` where it
 * depends on a feature gate, or on a version that is not known.
 */
export const nodeAuthorizer =
  (isRelated: IsRelated, minor: () => number | undefined): Authorizer =>
  (user, attributes) => {
    if (!user.name.startsWith(userPrefix) || !user.groups.includes('system:nodes')) {
      return noOpinion()
    }
    const node = user.name.slice(userPrefix.length)
    if (node === '') return noOpinion(`unknown node for user ${JSON.stringify(user.name)}`)
    if (attributes.isResource) {
      const resource = qualifiedResource(attributes)
      if (gated.has(resource)) return unknown
      const decide = Object.hasOwn(divided, resource) ? divided[resource] : undefined
      if (decide) {
        const decision = decide(attributes, { node, isRelated })
        if (decision.kind !== 'no-opinion' || !wasOpen(resource, attributes)) return decision
        return (minor() ?? 0) < narrowedIn ? unknown : decision
      }
    }
    return rulesAllow(nodeRules, attributes) ? allowed() : noOpinion()
  }

const userPrefix = 'system:node:'

/** Before, a node could read all nodes, pods and ResourceSlices unless a feature gate was on. */
const narrowedIn = 32

function wasOpen(resource: string, { verb, subresource }: ResourceAttributes): boolean {
  if (subresource !== '') return false
  if (resource === 'nodes' || resource === 'pods') return isRead(verb)
  const ofMany = ['list', 'watch', 'deletecollection'].includes(verb)
  return resource === 'resourceslices.resource.k8s.io' && ofMany
}

interface NodeFacts {
  readonly node: string
  readonly isRelated: IsRelated
}

type Rule = (attributes: ResourceAttributes, facts: NodeFacts) => Decision

/** Resources that a node may read only with a feature gate that the hub does not know. */
const gated = new Set([
  'podcertificaterequests.certificates.k8s.io',
  'clustertrustbundles.certificates.k8s.io',
])

/** The rules that depend on the object or the selector, by resource. */
const divided: Readonly<Record<string, Rule>> = {
  secrets: readsNamespaced('secrets'),
  configmaps: readsNamespaced('configmaps'),
  persistentvolumeclaims: (attributes, facts) => {
    if (attributes.subresource !== 'status') {
      return gets('persistentvolumeclaims')(attributes, facts)
    }
    return attributes.verb === 'update' || attributes.verb === 'patch'
      ? related('persistentvolumeclaims', attributes, facts)
      : noOpinion('can only get/update/patch this type')
  },
  persistentvolumes: gets('persistentvolumes'),
  'resourceclaims.resource.k8s.io': gets('resourceclaims.resource.k8s.io'),
  'volumeattachments.storage.k8s.io': gets('volumeattachments.storage.k8s.io'),
  serviceaccounts: (attributes, facts) => {
    const { verb, name, subresource } = attributes
    // Allowed for the service accounts of its pods where a feature gate is on.
    if (verb === 'get' && subresource === '') {
      const decision = readsNamespaced('serviceaccounts')(attributes, facts)
      return decision.kind === 'allowed' ? unknown : decision
    }
    if (verb !== 'create' || name === '') {
      return noOpinion('can only create tokens for individual service accounts')
    }
    return subresource === 'token'
      ? related('serviceaccounts', attributes, facts)
      : noOpinion('can only create token subresource of serviceaccount')
  },
  'leases.coordination.k8s.io': ({ verb, namespace, name }, { node }) => {
    if (!ownObjectVerbs.has(verb)) {
      return noOpinion('can only get, create, update, patch, or delete a node lease')
    }
    if (namespace !== 'kube-node-lease') {
      return noOpinion('can only access leases in the "kube-node-lease" system namespace')
    }
    return verb === 'create' || name === node
      ? allowed()
      : noOpinion('can only access node lease with the same name as the requesting node')
  },
  'csinodes.storage.k8s.io': ({ verb, subresource, name }, { node }) => {
    if (!ownObjectVerbs.has(verb)) {
      return noOpinion('can only get, create, update, patch, or delete a CSINode')
    }
    if (subresource !== '') return noOpinion('cannot authorize CSINode subresources')
    return verb === 'create' || name === node
      ? allowed()
      : noOpinion('can only access CSINode with the same name as the requesting node')
  },
  'resourceslices.resource.k8s.io': (attributes, facts) => {
    const { verb, subresource } = attributes
    if (subresource !== '') return noOpinion('cannot authorize ResourceSlice subresources')
    if (verb === 'create') return allowed()
    if (['get', 'update', 'patch', 'delete'].includes(verb)) {
      return related('resourceslices.resource.k8s.io', attributes, facts)
    }
    if (!['watch', 'list', 'deletecollection'].includes(verb)) {
      return noOpinion(
        'only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection',
      )
    }
    return selects(attributes, 'spec.nodeName', facts.node)
      ? allowed()
      : noOpinion(
          'can only list/watch/deletecollection resourceslices with nodeName field selector',
        )
  },
  nodes: ({ verb, subresource, name }, { node }) => {
    if (subresource === 'status') return isUpdate(verb) ? allowed() : noOpinion()
    if (subresource !== '') return noOpinion()
    if (verb === 'create' || isUpdate(verb)) return allowed()
    if (!isRead(verb)) return noOpinion()
    if (name === node) return allowed()
    return noOpinion(
      name === ''
        ? `node '${node}' cannot read all nodes, only its own Node object`
        : `node '${node}' cannot read '${name}', only its own Node object`,
    )
  },
  pods: (attributes, facts) => {
    const { verb, subresource, name } = attributes
    if (subresource === 'status') return isUpdate(verb) ? allowed() : noOpinion()
    if (subresource === 'eviction') return verb === 'create' ? allowed() : noOpinion()
    if (subresource !== '') return noOpinion()
    if (verb === 'create' || verb === 'delete') return allowed()
    if (verb === 'get') return related('pods', attributes, facts)
    if (!isRead(verb)) return noOpinion()
    if (selects(attributes, 'spec.nodeName', facts.node)) return allowed()
    return name === ''
      ? noOpinion('can only list/watch pods with spec.nodeName field selector')
      : related('pods', attributes, facts)
  },
}

const ownObjectVerbs = new Set(['get', 'create', 'update', 'patch', 'delete'])

const isUpdate = (verb: string): boolean => verb === 'update' || verb === 'patch'
const isRead = (verb: string): boolean => ['get', 'list', 'watch'].includes(verb)

const selects = ({ fieldSelector }: ResourceAttributes, name: string, of: string): boolean =>
  fieldSelector.some(
    ({ field, operator, value }) => field === name && operator === '=' && value === of,
  )

/** A get of one object. */
function gets(resource: RelatedResource): Rule {
  return (attributes, facts) => {
    if (attributes.verb !== 'get') {
      return noOpinion('can only get individual resources of this type')
    }
    if (attributes.subresource !== '') return noOpinion('cannot get subresource')
    return related(resource, attributes, facts)
  }
}

/** A get, list or watch of one object of a namespace. */
function readsNamespaced(resource: RelatedResource): Rule {
  return (attributes, facts) => {
    if (!isRead(attributes.verb)) return noOpinion('can only read resources of this type')
    if (attributes.subresource !== '') return noOpinion('cannot read subresource')
    if (attributes.namespace === '') {
      return noOpinion('can only read namespaced object of this type')
    }
    return related(resource, attributes, facts)
  }
}

function related(
  resource: RelatedResource,
  { namespace, name }: ResourceAttributes,
  { node, isRelated }: NodeFacts,
): Decision {
  if (name === '') return noOpinion('No Object name found')
  const is = isRelated(node, resource, { namespace, name })
  if (is === undefined) return unknown
  return is ? allowed() : noOpinion(`no relationship found between node '${node}' and this object`)
}

const rule = (
  verbs: readonly string[],
  apiGroups: readonly string[],
  resources: readonly string[],
): PolicyRule => ({ verbs, apiGroups, resources, resourceNames: [], nonResourceURLs: [] })

const read = ['get', 'list', 'watch'] as const

/**
 * The rights of every node for the other resources (k/k
 * plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, NodeRules).
 */
const nodeRules: readonly PolicyRule[] = [
  rule(['create'], ['authentication.k8s.io'], ['tokenreviews']),
  rule(['create'], ['authorization.k8s.io'], ['subjectaccessreviews', 'localsubjectaccessreviews']),
  rule(read, [''], ['services']),
  rule(['create', 'update', 'patch'], ['', 'events.k8s.io'], ['events']),
  rule(['get'], [''], ['endpoints']),
  rule(['create', ...read], ['certificates.k8s.io'], ['certificatesigningrequests']),
  rule(read, ['storage.k8s.io'], ['csidrivers']),
  rule(read, ['node.k8s.io'], ['runtimeclasses']),
]
