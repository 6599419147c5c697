import t from 'tap'
import { apiVersionOf, parseApiVersion, qualifiedResource } from '../../../src/api/kube/gvk.ts'

void t.test('the core group is written without a group, and read back as none', async (t) => {
  for (const [group, version, text] of [
    ['', 'v1', 'v1'],
    ['apps', 'v1', 'apps/v1'],
    ['storage.k8s.io', 'v1beta1', 'storage.k8s.io/v1beta1'],
  ] as const) {
    t.equal(apiVersionOf({ group, version }), text)
    t.strictSame(parseApiVersion(text), { group, version })
  }
})

void t.test('a resource is qualified by its group, unless that is the core group', async (t) => {
  t.equal(qualifiedResource({ group: '', resource: 'pods' }), 'pods')
  t.equal(qualifiedResource({ group: 'apps', resource: 'deployments' }), 'deployments.apps')
})
