import t from 'tap'
import { nodeAuthorizer } from '../../../src/hub/authorization/node-authorizer.ts'
import { relatedTo, toDo } from './policies.ts'

const groups = ['system:nodes', 'system:authenticated']
const node = { name: 'system:node:edge-1', groups }
const isRelated = relatedTo(
  'edge-1',
  'secrets shop/s',
  'configmaps shop/c',
  'persistentvolumeclaims shop/p',
  'persistentvolumes /v',
  'serviceaccounts shop/robot',
  'pods shop/a',
  'volumeattachments.storage.k8s.io /va',
)
const authorize = nodeAuthorizer(isRelated, () => 36)

const may = (what: string): string => authorize(node, toDo(what)).kind

void t.test('a node may do what its pods need, and what is its own', async (t) => {
  for (const what of [
    'get secrets shop/s',
    'list secrets shop/s',
    'watch configmaps shop/c',
    'get persistentvolumeclaims shop/p',
    'patch persistentvolumeclaims/status shop/p',
    'get persistentvolumes /v',
    'get volumeattachments.storage.k8s.io /va',
    'create serviceaccounts/token shop/robot',
    'get pods shop/a',
    'list pods shop/a',
    'create pods shop',
    'create pods/eviction shop/b',
    'patch pods/status shop/b',
    'get nodes /edge-1',
    'patch nodes/status /edge-2',
    'create nodes',
    'update leases.coordination.k8s.io kube-node-lease/edge-1',
    'create leases.coordination.k8s.io kube-node-lease',
    'get csinodes.storage.k8s.io /edge-1',
    'create resourceslices.resource.k8s.io',
    'list services',
    'create events.events.k8s.io shop',
    'create subjectaccessreviews.authorization.k8s.io',
    'watch csidrivers.storage.k8s.io',
  ]) {
    t.equal(may(what), 'allowed', what)
  }
})

void t.test('a node gets no access to objects unrelated to it', async (t) => {
  for (const what of [
    'get secrets shop/other',
    'get secrets other/s',
    'list secrets shop',
    'list secrets',
    'update secrets shop/s',
    'get secrets/x shop/s',
    'list persistentvolumeclaims shop/p',
    'get persistentvolumeclaims/status shop/p',
    'get persistentvolumes shop/v',
    'create serviceaccounts/token shop/other',
    'create serviceaccounts shop',
    'get pods shop/b',
    'list pods shop',
    'get pods/log shop/a',
    'deletecollection pods shop',
    'get nodes /edge-2',
    'list nodes',
    'delete nodes /edge-1',
    'get nodes/proxy /edge-1',
    'get leases.coordination.k8s.io kube-node-lease/edge-2',
    'get leases.coordination.k8s.io shop/edge-1',
    'list leases.coordination.k8s.io kube-node-lease',
    'get csinodes.storage.k8s.io /edge-2',
    'get csinodes.storage.k8s.io/x /edge-1',
    'list resourceslices.resource.k8s.io',
    'update services shop/a',
    'get deployments.apps shop/a',
    'get /metrics',
  ]) {
    t.equal(may(what), 'no-opinion', what)
  }
})

void t.test('a decision that depends on facts the hub lacks is unknown', async (t) => {
  for (const what of [
    'get serviceaccounts shop/robot',
    'get podcertificaterequests.certificates.k8s.io shop/a',
    'list clustertrustbundles.certificates.k8s.io',
  ]) {
    t.equal(may(what), 'unknown', what)
  }
  const blind = nodeAuthorizer(
    () => undefined,
    () => 36,
  )
  t.equal(blind(node, toDo('get secrets shop/s')).kind, 'unknown')
  t.equal(blind(node, toDo('list secrets shop')).kind, 'no-opinion')
})

void t.test('reads of other nodes’ objects depend on the version', async (t) => {
  for (const minor of [31, undefined]) {
    const older = nodeAuthorizer(isRelated, () => minor)
    const kindOf = (what: string): string => older(node, toDo(what)).kind
    for (const what of ['list pods', 'get pods shop/b', 'watch nodes', 'get nodes /edge-2'])
      t.equal(kindOf(what), 'unknown', `${what} in ${minor}`)
    t.equal(kindOf('list resourceslices.resource.k8s.io'), 'unknown')
    t.equal(kindOf('get pods shop/a'), 'allowed')
    t.equal(kindOf('get secrets shop/other'), 'no-opinion')
    t.equal(kindOf('delete nodes /edge-2'), 'no-opinion')
  }
  t.equal(may('list pods'), 'no-opinion')
  t.equal(may('get nodes /edge-2'), 'no-opinion')
})

void t.test('a selector for the node’s own pods is allowed, and no other', async (t) => {
  const listing = (field: string, operator: '=' | '!=', value: string): string =>
    authorize(node, {
      ...(toDo('list pods') as Extract<ReturnType<typeof toDo>, { isResource: true }>),
      fieldSelector: [{ field, operator, value }],
    }).kind
  t.equal(listing('spec.nodeName', '=', 'edge-1'), 'allowed')
  t.equal(listing('spec.nodeName', '!=', 'edge-1'), 'no-opinion')
  t.equal(listing('spec.nodeName', '=', 'edge-2'), 'no-opinion')
  t.equal(listing('metadata.name', '=', 'edge-1'), 'no-opinion')
})

void t.test('only a user of system:nodes with the name of a node is a node', async (t) => {
  for (const user of [
    { name: 'system:node:edge-1', groups: ['system:authenticated'] },
    { name: 'edge-1', groups },
    { name: 'system:node:', groups },
  ]) {
    t.equal(authorize(user, toDo('list services')).kind, 'no-opinion', user.name)
  }
})
