import t from 'tap'
import type { UserInfo } from '../../../src/hub/authorization/attributes.ts'
import { authorizerOf, bindingTo, roleOf, toDo, type Rule } from './policies.ts'

const robot = 'system:serviceaccount:shop:robot'
const user: UserInfo = {
  name: robot,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
}
const toRobot = [{ kind: 'User', name: robot }]
const clusterRole = { kind: 'ClusterRole', name: 'r' }

/** What a rule for the whole cluster lets the robot do. */
const under = (...rules: readonly Rule[]) => {
  const authorize = authorizerOf([roleOf('r', rules), bindingTo('b', clusterRole, toRobot)])
  return (what: string): boolean => authorize(user, toDo(what)).kind === 'allowed'
}

interface Row {
  readonly rule: Rule
  readonly may: readonly string[]
  readonly mayNot: readonly string[]
}

const rows: Readonly<Record<string, Row>> = {
  'verbs, groups and resources must all match': {
    rule: { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] },
    may: ['get pods shop/a', 'list pods shop', 'list pods'],
    mayNot: ['watch pods', 'get pods.metrics.k8s.io shop/a', 'get nodes', 'get pods/log shop/a'],
  },
  'a star stands for all verbs, groups, resources and subresources': {
    rule: { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    may: ['fly pods', 'get deployments.apps/scale shop/a', 'get secrets'],
    mayNot: ['get /metrics'],
  },
  'a star as part of a word is no star': {
    rule: { verbs: ['ge*'], apiGroups: ['*'], resources: ['po*', 'pods/*'] },
    may: ['ge* pods/*'],
    mayNot: ['get pods', 'ge* pods', 'ge* pods/log'],
  },
  'a subresource is granted by its own name': {
    rule: { verbs: ['get'], apiGroups: [''], resources: ['pods/log'] },
    may: ['get pods/log shop/a'],
    mayNot: ['get pods shop/a', 'get pods/exec shop/a'],
  },
  'a subresource is granted for all resources': {
    rule: { verbs: ['update'], apiGroups: ['apps'], resources: ['*/scale'] },
    may: ['update deployments.apps/scale shop/a', 'update statefulsets.apps/scale shop/a'],
    mayNot: ['update deployments.apps shop/a', 'update deployments.apps/status shop/a'],
  },
  'resource names restrict, and a request without a name is of none of them': {
    rule: { verbs: ['*'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['a', 'b'] },
    may: ['get configmaps shop/a', 'watch configmaps shop/b'],
    mayNot: ['get configmaps shop/c', 'list configmaps shop', 'create configmaps shop'],
  },
  'a path is granted exactly, or by what it begins with': {
    rule: { verbs: ['get'], nonResourceURLs: ['/metrics', '/healthz/*', '/a**'] },
    may: ['get /metrics', 'get /healthz/', 'get /healthz/etcd', 'get /a', 'get /a/b'],
    mayNot: ['get /metrics/slis', 'get /healthz', 'post /metrics', 'get /', 'get pods'],
  },
  'a star in the middle of a path is no star': {
    rule: { verbs: ['get'], nonResourceURLs: ['/a/*/b'] },
    may: ['get /a/*/b'],
    mayNot: ['get /a/x/b'],
  },
  'a rule without resources grants none, nor does one without groups or verbs': {
    rule: { verbs: ['*'], apiGroups: ['*'] },
    may: [],
    mayNot: ['get pods', 'get /metrics'],
  },
}

for (const [name, { rule, may, mayNot }] of Object.entries(rows)) {
  void t.test(name, async (t) => {
    const mayDo = under(rule)
    for (const what of may) t.ok(mayDo(what), what)
    for (const what of mayNot) t.notOk(mayDo(what), what)
  })
}

void t.test('a binding applies to users, groups and service accounts by their names', async (t) => {
  const subjects = {
    'the user': { kind: 'User', name: robot },
    'its namespace’s group': { kind: 'Group', name: 'system:serviceaccounts:shop' },
    'all authenticated': { kind: 'Group', name: 'system:authenticated' },
    'the account': { kind: 'ServiceAccount', name: 'robot', namespace: 'shop' },
  }
  const others = {
    'another user': { kind: 'User', name: 'robot' },
    'another group': { kind: 'Group', name: 'system:unauthenticated' },
    'a group of the user’s name': { kind: 'Group', name: robot },
    'an account of another namespace': { kind: 'ServiceAccount', name: 'robot', namespace: 'b' },
    'an account without a namespace': { kind: 'ServiceAccount', name: 'robot' },
    'another kind': { kind: 'Robot', name: robot },
  }
  const role = roleOf('r', [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }])
  const decide = (subject: { kind: string; name: string }): string =>
    authorizerOf([role, bindingTo('b', clusterRole, [subject])])(user, toDo('get pods')).kind
  for (const [name, subject] of Object.entries(subjects)) t.equal(decide(subject), 'allowed', name)
  for (const [name, subject] of Object.entries(others)) {
    t.equal(decide(subject), 'no-opinion', name)
  }
})

void t.test('a RoleBinding grants in its namespace alone, whatever it refers to', async (t) => {
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods', 'nodes'] }]
  const here = [{ kind: 'ServiceAccount', name: 'robot' }]
  for (const [kind, namespace] of [['ClusterRole'], ['Role', 'shop']] as const) {
    const authorize = authorizerOf([
      roleOf('r', rules, namespace),
      bindingTo('b', { kind, name: 'r' }, here, 'shop'),
    ])
    const may = (what: string): string => authorize(user, toDo(what)).kind
    t.equal(may('get pods shop/a'), 'allowed', kind)
    t.equal(may('get pods other/a'), 'no-opinion', kind)
    t.equal(may('get nodes'), 'no-opinion', kind)
  }
})

void t.test('a Role is of its namespace, and a ClusterRoleBinding refers to none', async (t) => {
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]
  const role = { kind: 'Role', name: 'r' }
  const elsewhere = authorizerOf([roleOf('r', rules, 'b'), bindingTo('b', role, toRobot, 'shop')])
  t.equal(elsewhere(user, toDo('get pods shop/a')).kind, 'no-opinion')
  const wide = authorizerOf([roleOf('r', rules, 'shop'), bindingTo('b', role, toRobot)])
  t.equal(wide(user, toDo('get pods shop/a')).kind, 'no-opinion')
})

void t.test('the reasons are the API server’s', async (t) => {
  const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]
  const authorize = authorizerOf([
    roleOf('reader', rules),
    bindingTo('gone', { kind: 'Role', name: 'lost' }, toRobot, 'shop'),
    bindingTo('readers', { kind: 'ClusterRole', name: 'reader' }, [
      { kind: 'ServiceAccount', name: 'robot', namespace: 'shop' },
    ]),
  ])
  t.strictSame(authorize(user, toDo('get pods shop/a')), {
    kind: 'allowed',
    reason:
      'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to ServiceAccount "robot/shop"',
  })
  t.strictSame(authorize(user, toDo('get nodes shop')), {
    kind: 'no-opinion',
    reason: 'RBAC: role.rbac.authorization.k8s.io "lost" not found',
  })
})
