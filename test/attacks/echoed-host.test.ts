/**
 * A refusal that repeats a Host of many KB is as long as its sender wants, and holds memory while
 * unread. Refusals of unproven callers contain only the hub's own words.
 */
import t from 'tap'
import type { BodyReply, Claim, Exchange } from '../../src/http/exchange/exchange.ts'
import { MalformedSelector } from '../../src/api/kube/selectors.ts'
import { badRequest, notFound, StatusError, tooManyRequests } from '../../src/api/kube/status.ts'
import { withEncoding } from '../../src/hub/pipeline/encoding.ts'
import { claimOf, exchangeOf } from '../kit/exchange.ts'
import { startOnlineHub, startCloud } from '../kit/hub.ts'
import { dial, type Answer } from '../kit/wire/wire.ts'

/** As long as a head may be at the ops listener, too. */
const long = 'x'.repeat(12_000)

const ask = (...fields: string[]): string =>
  ['GET /api/v1/pods HTTP/1.1', ...fields, 'Connection: close', '', ''].join('\r\n')

void t.test('no refusal repeats a Host, an Origin, a path or a token', async (t) => {
  const hub = await startOnlineHub(t, { upstreams: [await startCloud(t)] })
  const { proxyPort, opsPort } = hub.hub
  const asked = async (port: number, head: string): Promise<Answer> =>
    (await dial(t, port)).write(head).answer()
  const heads: readonly (readonly [what: string, head: string])[] = [
    ['a foreign Host', ask(`Host: ${long}.example`)],
    ['a malformed Host', ask(`Host: ${long}<`)],
    ['an Origin', ask('Host: localhost', `Origin: https://${long}`)],
    ['a token', ask('Host: localhost', `Authorization: Basic ${long}`)],
    ['a path that is none', `GET ${long} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`],
  ]
  for (const port of [proxyPort, opsPort]) {
    for (const [what, head] of heads) {
      const { line, fields, body } = await asked(port, head)
      const bytes = [line, ...fields, body].join('').length
      t.ok(bytes < 1_000, `${what}: ${line}, ${bytes} bytes`)
    }
  }
})

const claimed = (holds: boolean): Claim => claimOf({ holds: () => holds })

const errors: readonly (readonly [error: Error, code: number])[] = [
  [new MalformedSelector(`"${long}" is no selector`), 400],
  [new StatusError(badRequest(`"${long}" is no number`)), 400],
  [new StatusError(notFound({ group: '', resource: 'pods', name: long })), 404],
]

for (const [error, code] of errors) {
  void t.test(
    `a ${error.name} of ${code} repeats parts of a request to proven callers only`,
    async (t) => {
      const bodyFor = async (exchange: Exchange): Promise<BodyReply> =>
        (await withEncoding(() => undefined)(() => Promise.reject(error))(exchange)) as BodyReply
      const exchange = exchangeOf('/api/v1/pods')
      const unproven = await bodyFor({ ...exchange, claim: claimed(false) })
      t.equal(unproven.status, code)
      t.notMatch(Buffer.from(unproven.body).toString(), long)
      for (const proven of [exchange, { ...exchange, claim: claimed(true) }]) {
        t.match(Buffer.from((await bodyFor(proven)).body).toString(), long)
      }
    },
  )
}

void t.test('a refusal of an unproven caller keeps its Retry-After', async (t) => {
  const rescue = withEncoding(() => undefined)(() => {
    throw new StatusError(tooManyRequests('later', 7))
  })
  const reply = (await rescue({
    ...exchangeOf('/api/v1/pods'),
    claim: claimed(false),
  })) as BodyReply
  t.equal(reply.headers.get('retry-after'), '7')
})
