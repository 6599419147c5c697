import t from 'tap'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { presentedCredential } from '../../../src/hub/identity/claims.ts'
import { exchangeOf } from '../../kit/exchange.ts'

/** The token in these fields, as an API server would find it. */
const tokenIn = (fields: readonly string[], upgrade = false): string | undefined =>
  presentedCredential({ ...exchangeOf('/api'), headers: new HeaderList(fields), upgrade })?.token

void t.test('a bearer token is read as an API server reads it', async (t) => {
  for (const [value, token] of [
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER a.b-c_d~e+f/g==', 'a.b-c_d~e+f/g=='],
    ['Bearer abc def', 'abc'],
    ['Bearer  abc', undefined],
    ['Bearer\tabc', undefined],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Bearer a\u00e9', undefined],
    ['Bearer a,b', undefined],
    ['Basic eDp5', undefined],
    ['abc', undefined],
    ['', undefined],
  ] as const)
    t.equal(tokenIn(['Authorization', value]), token, JSON.stringify(value))
})

void t.test('two Authorization headers make no token', async (t) => {
  t.equal(tokenIn(['Authorization', 'Bearer a', 'authorization', 'Bearer b']), undefined)
})

void t.test('a token in a WebSocket protocol counts only for a WebSocket', async (t) => {
  const encoded = Buffer.from('abc').toString('base64url')
  const fields = ['Sec-WebSocket-Protocol', `v5, base64url.bearer.authorization.k8s.io.${encoded}`]
  t.equal(tokenIn(fields, true), 'abc')
  t.equal(tokenIn(fields), undefined, 'an API server does not look there')
  t.ok(
    presentedCredential({ ...exchangeOf('/api'), headers: new HeaderList(fields) }),
    'yet it is shown',
  )
  t.equal(tokenIn([...fields, 'Authorization', 'Basic eDp5'], true), undefined)
})

void t.test('a request without credentials presents none', async (t) => {
  t.equal(
    presentedCredential({ ...exchangeOf('/api'), headers: new HeaderList(['Accept', '*/*']) }),
    undefined,
  )
})
