import t from 'tap'
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import type { BodyReply, Exchange } from '../../src/exchange/exchange.ts'
import { StatusError } from '../../src/kube/status.ts'
import { withInFlightLimit, type Shed } from '../../src/pipeline/in-flight.ts'
import { emptyReply, exchangeOf } from '../kit/exchange.ts'

const pods = '/api/v1/namespaces/default/pods'

void t.test('watches and what streams to a person may last and are never shed', async (t) => {
  const lasting = [
    `${pods}?watch=true`,
    `${pods}/a/log`,
    `${pods}/a/exec`,
    `${pods}/a/attach`,
    `${pods}/a/portforward`,
    '/api/v1/namespaces/default/services/a/proxy/x',
  ]
  const short = [pods, `${pods}/a`, `${pods}/a/status`, '/healthz', '/apis', `${pods}?watch=false`]
  const handle = withInFlightLimit(
    () => 0,
    () => undefined,
  )(async () => emptyReply)
  for (const url of lasting) t.equal(await handle(exchangeOf(url)), emptyReply, url)
  for (const url of short) t.throws(() => void handle(exchangeOf(url)), StatusError, url)
})

void t.test('a short request counts until its answer is over', async (t) => {
  let rejected = 0
  const handle = withInFlightLimit(
    () => 2,
    () => rejected++,
  )(async () => emptyReply)
  const clients = [new AbortController(), new AbortController()]
  for (const { signal } of clients) await handle(exchangeOf(pods, { signal }))
  const shed = async (): Promise<unknown> => {
    try {
      return await handle(exchangeOf(pods))
    } catch (error) {
      return error
    }
  }
  const error = await shed()
  t.ok(error instanceof StatusError)
  t.match(error, { status: { code: 429, details: { retryAfterSeconds: 1 } } })
  t.equal(rejected, 1)
  await handle(exchangeOf(`${pods}?watch=true`))
  await handle(exchangeOf(`${pods}/a/exec`, { upgrade: true }))
  clients[0]?.abort()
  t.equal(await shed(), emptyReply)
  t.match(await shed(), { status: { code: 429 } })
})

/** A request whose body the test sends, and the end of which it decides. */
function posting(): { exchange: Exchange; body: PassThrough; over: AbortController } {
  const body = new PassThrough()
  const over = new AbortController()
  return {
    exchange: { ...exchangeOf(pods, { method: 'POST', signal: over.signal }), body },
    body,
    over,
  }
}

/** An answer when the body has been read, as the cloud gives it. */
const afterBody = async ({ body, signal }: Exchange): Promise<BodyReply> => {
  for await (const _ of body ?? []) signal.throwIfAborted()
  return emptyReply
}

const codeOf = async (answer: Promise<unknown>): Promise<number | undefined> => {
  try {
    await answer
    return undefined
  } catch (error) {
    return (error as StatusError).status.code
  }
}

void t.test('bodies that are sent slowly keep nobody else from being served', async (t) => {
  const handle = withInFlightLimit(
    () => 2,
    () => t.fail('nothing is shed'),
  )(afterBody)
  const slow = [posting(), posting()]
  const answers = slow.map(({ exchange }) => handle(exchange))
  for (let i = 0; i < 10; i++) {
    const read = new AbortController()
    t.equal(await handle(exchangeOf(pods, { signal: read.signal })), emptyReply)
    read.abort()
  }
  for (const { body } of slow) body.end('x')
  for (const answer of answers) t.equal(await answer, emptyReply)
})

void t.test('of slow bodies the one that began first makes room for the next', async (t) => {
  const shed: Shed[] = []
  const handle = withInFlightLimit(
    () => 2,
    (reason) => shed.push(reason),
  )(afterBody)
  const [first, second, third] = [posting(), posting(), posting()]
  const answers = [first, second, third].map(({ exchange }) => handle(exchange))
  t.equal(await codeOf(answers[0] as Promise<unknown>), 429)
  t.strictSame(shed, ['slow-body'])
  second.body.end('x')
  third.body.end('x')
  t.equal(await answers[1], emptyReply)
  t.equal(await answers[2], emptyReply)
})

void t.test('a body that has come takes a slot like any other request', async (t) => {
  const shed: Shed[] = []
  const handle = withInFlightLimit(
    () => 1,
    (reason) => shed.push(reason),
  )(afterBody)
  const { exchange, body, over } = posting()
  const answer = handle(exchange)
  body.end('x')
  await answer
  t.throws(() => void handle(exchangeOf(pods)), StatusError)
  t.strictSame(shed, ['in-flight'])
  over.abort()
  t.equal(await handle(exchangeOf(pods)), emptyReply)
})

void t.test('a body that has not come within a minute is waited for no longer', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const shed: Shed[] = []
  const handle = withInFlightLimit(
    () => 1,
    (reason) => shed.push(reason),
  )(afterBody)
  const answer = codeOf(handle(posting().exchange))
  mock.timers.tick(59_999)
  t.strictSame(shed, [])
  mock.timers.tick(1)
  t.equal(await answer, 504)
  t.strictSame(shed, ['slow-body'])
})
