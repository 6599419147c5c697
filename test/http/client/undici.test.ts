import t from 'tap'
import { Client, Pool, buildConnector } from 'undici'
import { undici } from '../../../src/http/client/undici.ts'

void t.test('the private modules of undici are what the package exports', async (t) => {
  const moved = 'undici has moved it: find its path anew in src/http/client/undici.ts'
  t.equal(undici.Client.name, Client.name, moved)
  t.equal(undici.Pool.name, Pool.name, moved)
  t.equal(undici.buildConnector.name, buildConnector.name, moved)
  for (const own of [undici.Client, undici.Pool]) t.ok('dispatch' in own.prototype, 'it dispatches')
})
