import t from 'tap'
import {
  nodeIdentity,
  unprovenIdentity,
  serviceAccount,
  tokenHolder,
} from '../../../src/api/request/identity.ts'

void t.test('no hash of a token is ever the node', async (t) => {
  t.equal(nodeIdentity, 'node')
  t.equal(tokenHolder('node'), 'token:node')
  t.not(tokenHolder('a'), tokenHolder('b'))
})

void t.test('no service account is another, however they are called', async (t) => {
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
