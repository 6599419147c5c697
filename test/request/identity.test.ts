import t from 'tap'
import { node, tokenHolder } from '../../src/request/identity.ts'

void t.test('no hash of a token is ever the node', async (t) => {
  t.equal(node, 'node')
  t.equal(tokenHolder('node'), 'token:node')
  t.not(tokenHolder('a'), tokenHolder('b'))
})
