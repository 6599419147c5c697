import t from 'tap'
import { mock } from 'node:test'
import type { BodyReply } from '../../src/exchange/exchange.ts'
import { HeaderList } from '../../src/exchange/headers.ts'
import { StatusError } from '../../src/kube/status.ts'
import { withDeadline, withInFlightLimit } from '../../src/pipeline/limits.ts'
import { exchangeOf } from '../kit/exchange.ts'

const reply: BodyReply = {
  kind: 'body',
  status: 200,
  headers: new HeaderList(),
  from: 'cloud',
  body: Buffer.alloc(0),
}

const pods = '/api/v1/namespaces/default/pods'

/** A hub that nobody has told to stop. */
const running = new AbortController().signal

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
  const handle = withInFlightLimit(0, () => undefined)(async () => reply)
  for (const url of lasting) t.equal(await handle(exchangeOf(url)), reply, url)
  for (const url of short) t.throws(() => void handle(exchangeOf(url)), StatusError, url)
})

void t.test('a watch is ended fifteen seconds after its time, and not before', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let signal: AbortSignal | undefined
  const handle = withDeadline(running)(async (exchange) => {
    signal = exchange.signal
    return reply
  })
  await handle(exchangeOf(`${pods}?watch=true&timeoutSeconds=300`))
  mock.timers.tick(314_999)
  t.equal(signal?.aborted, false)
  mock.timers.tick(1)
  t.equal(signal?.aborted, true)
})

void t.test('a watch that has not begun by then is answered that it took too long', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const client = new AbortController()
  const given = withDeadline(running)(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('given up')))
      }),
  )
  const url = `${pods}?watch=true&timeoutSeconds=1`
  const late = given(exchangeOf(url))
  mock.timers.tick(16_000)
  t.match(await late.catch((error: unknown) => error), {
    status: { code: 504, reason: 'Timeout' },
  })
  const left = given(exchangeOf(url, { signal: client.signal }))
  client.abort('the client has gone')
  await t.rejects(left, { message: 'given up' })
})

void t.test('a watch that is over leaves no deadline behind', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const client = new AbortController()
  const reasons: unknown[] = []
  const handle = withDeadline(running)(async ({ signal }) => {
    signal.addEventListener('abort', () => reasons.push(signal.reason))
    return reply
  })
  await handle(exchangeOf(`${pods}?watch=true&timeoutSeconds=1`, { signal: client.signal }))
  client.abort('the client has gone')
  mock.timers.tick(60_000)
  t.strictSame(reasons, ['the client has gone'])
})

void t.test('what names no time, or none that makes sense, has no deadline', async (t) => {
  const urls = [
    pods,
    `${pods}?timeoutSeconds=5`,
    `${pods}?watch=true`,
    `${pods}?watch=true&timeoutSeconds=0`,
    `${pods}?watch=true&timeoutSeconds=-5`,
    `${pods}?watch=true&timeoutSeconds=x`,
    `${pods}?watch=true&timeoutSeconds=99999999999`,
  ]
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  for (const url of urls) {
    let signal: AbortSignal | undefined
    await withDeadline(running)(async (exchange) => {
      signal = exchange.signal
      return reply
    })(exchangeOf(url))
    mock.timers.tick(100_000_000)
    t.equal(signal?.aborted, false, url)
  }
})

void t.test('a short request counts until its answer is over', async (t) => {
  let rejected = 0
  const handle = withInFlightLimit(2, () => rejected++)(async () => reply)
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
  t.equal(await shed(), reply)
  t.match(await shed(), { status: { code: 429 } })
})

void t.test('a watch ends when the hub stops, whatever time it asked for', async (t) => {
  const stopping = new AbortController()
  let signal: AbortSignal | undefined
  await withDeadline(stopping.signal)(async (exchange) => {
    signal = exchange.signal
    return reply
  })(exchangeOf(`${pods}?watch=true`))
  t.equal(signal?.aborted, false)
  stopping.abort()
  t.equal(signal?.aborted, true)
})
