import t from 'tap'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import {
  clusterRoleBindingOf,
  roleBindingOf,
  rulesOf,
} from '../../../src/hub/authorization/rbac-policy.ts'

const rule = (change: JsonObject): Json => ({
  rules: [
    { verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['a'], ...change },
  ],
})

void t.test('a rule with a malformed member grants nothing', async (t) => {
  t.equal(rulesOf(rule({})).length, 1)
  const members = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs']
  for (const member of members) {
    for (const value of ['*', 5, true, {}, { length: 0 }, [5], ['a', null], [['a']]]) {
      const rules = rulesOf(rule({ [member]: value }))
      t.strictSame(rules, [], `${member}: ${JSON.stringify(value)}`)
    }
  }
})

void t.test('an absent or null list is empty, as the API server reads it', async (t) => {
  const [read] = rulesOf({ rules: [{ verbs: ['get'], resourceNames: null }] })
  t.strictSame(read, {
    verbs: ['get'],
    apiGroups: [],
    resources: [],
    resourceNames: [],
    nonResourceURLs: [],
  })
})

void t.test('malformed rules count as none', async (t) => {
  for (const role of [null, 5, [], {}, { rules: null }, { rules: {} }, { rules: [5, null, []] }]) {
    t.strictSame(rulesOf(role), [], JSON.stringify(role))
  }
})

void t.test(
  'malformed subjects are left out, and a malformed role reference names none',
  async (t) => {
    const binding = roleBindingOf({
      metadata: { name: 'b', namespace: 'shop' },
      roleRef: { kind: ['ClusterRole'], name: 7 },
      subjects: [
        null,
        'root',
        { kind: 'User' },
        { kind: 'User', name: ['root'] },
        { kind: 'ServiceAccount', name: 'robot', namespace: 5 },
        { kind: 'user', name: 'root' },
        { kind: 'Group', name: 'readers' },
      ],
    })
    t.strictSame(binding, {
      name: 'b',
      namespace: 'shop',
      roleRef: { kind: '', name: '' },
      subjects: [{ kind: 'Group', name: 'readers', namespace: '' }],
    })
    t.strictSame(clusterRoleBindingOf(5).subjects, [])
  },
)

void t.test('a RoleBinding without a namespace binds nowhere, not everywhere', async (t) => {
  const subjects = [{ kind: 'Group', name: 'readers' }]
  for (const metadata of [{}, { namespace: 5 }, { namespace: null }, { namespace: '' }, 'shop']) {
    t.equal(roleBindingOf({ metadata, subjects }), undefined, JSON.stringify(metadata))
  }
})
