import t from 'tap'
import { nodeIdentity, serviceAccount, tokenHolder } from '../../../src/api/request/identity.ts'
import { attributesOf, refusalOf, userOf } from '../../../src/hub/authorization/requests.ts'
import { exchangeOf } from '../../kit/exchange.ts'

const resource = {
  isResource: true,
  group: '',
  subresource: '',
  namespace: '',
  name: '',
}

void t.test('a request is authorized by what an API server derives from it', async (t) => {
  const rows: readonly (readonly [string, string, object])[] = [
    ['GET', '/api/v1/namespaces/a/pods/b/log', { verb: 'get', resource: 'pods', namespace: 'a', name: 'b', subresource: 'log' }],
    ['GET', '/apis/apps/v1/deployments', { verb: 'list', group: 'apps', resource: 'deployments' }],
    ['DELETE', '/api/v1/namespaces/a/pods', { verb: 'deletecollection', resource: 'pods', namespace: 'a' }],
    ['GET', '/api/v1/namespaces/a', { verb: 'get', resource: 'namespaces', namespace: 'a', name: 'a' }],
    ['PUT', '/api/v1/namespaces/a/finalize', { verb: 'update', resource: 'namespaces', namespace: 'a', name: 'a', subresource: 'finalize' }],
    ['GET', '/api/v1/namespaces', { verb: 'list', resource: 'namespaces' }],
    [
      'GET',
      '/api/v1/namespaces/a/secrets?watch=true&fieldSelector=metadata.name%3Db',
      { verb: 'watch', resource: 'secrets', namespace: 'a', name: 'b' },
    ],
  ] // prettier-ignore
  for (const [method, url, expected] of rows) {
    t.strictSame(attributesOf(exchangeOf(url, { method })), { ...resource, ...expected }, url)
  }
  t.strictSame(attributesOf(exchangeOf('/version')), {
    isResource: false,
    verb: 'get',
    path: '/version',
  })
})

void t.test(
  'the node and service accounts are users, and the holder of a token is not known',
  async (t) => {
    t.strictSame(userOf(nodeIdentity, 'edge-1'), {
      name: 'system:node:edge-1',
      groups: ['system:nodes', 'system:authenticated'],
    })
    const account = serviceAccount({ namespace: 'shop', name: 'robot', uid: 'u' })
    t.strictSame(userOf(account, 'edge-1'), {
      name: 'system:serviceaccount:shop:robot',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    })
    t.equal(userOf(tokenHolder('account:shop/robot/u'), 'edge-1'), undefined)
  },
)

void t.test('a refusal is worded as the API server words it', async (t) => {
  const user = { name: 'jane', groups: [] }
  const refused = (url: string, why = ''): unknown => {
    const { code, reason, message, details } = refusalOf(user, attributesOf(exchangeOf(url)), why)
    return { code, reason, message, details }
  }
  const forbidden = { code: 403, reason: 'Forbidden' }
  t.strictSame(refused('/apis/apps/v1/namespaces/a/deployments/b/scale', 'RBAC: x'), {
    ...forbidden,
    message:
      'deployments.apps "b" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" in the namespace "a": RBAC: x',
    details: { name: 'b', group: 'apps', kind: 'deployments' },
  })
  t.strictSame(refused('/api/v1/nodes'), {
    ...forbidden,
    message:
      'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
    details: { kind: 'nodes' },
  })
  t.strictSame(refused('/logs/<a>'), {
    ...forbidden,
    message: 'forbidden: User "jane" cannot get path "/logs/&lt;a&gt;"',
    details: {},
  })
})
