import { format, inspect } from 'node:util'
import t from 'tap'
import { Secret } from '../../src/base/secret.ts'

void t.test('a secret is shown by reveal() alone, not by printing or JSON', async (t) => {
  const secret = new Secret('hunter2')
  t.equal(secret.reveal(), 'hunter2')
  for (const shown of [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    inspect(secret, { depth: 9, showHidden: true }),
    inspect({ deep: { secret } }, { depth: 9 }),
    format('%s %o %j', secret, secret, secret),
    JSON.stringify(Object.entries(secret)),
  ]) {
    t.notMatch(shown, 'hunter2')
  }
})
