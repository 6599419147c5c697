import t from 'tap'
import {
  nodeIdentity,
  unprovenIdentity,
  serviceAccount,
  tokenHolder,
} from '../../../src/api/request/identity.ts'

void t.test('no token’s hash is the node’s key', async (t) => {
  t.equal(nodeIdentity, 'node')
  t.equal(tokenHolder('node'), 'token:node')
  t.not(tokenHolder('a'), tokenHolder('b'))
})

void t.test('service accounts have distinct keys for any names', async (t) => {
  const of = (namespace: string, name: string, uid: string) =>
    serviceAccount({ namespace, name, uid })
  const all = [
    of('a', 'b', 'c'),
    of('a/b', 'c', ''),
    of('a', 'b/c', ''),
    of('a', 'b', 'd'),
    unprovenIdentity,
  ]
  t.equal(new Set([...all, nodeIdentity, tokenHolder('a/b/c')]).size, all.length + 2)
  t.equal(of('a', 'b', 'c'), of('a', 'b', 'c'))
})
