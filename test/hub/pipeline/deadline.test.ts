import t from 'tap'
import { mock } from 'node:test'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import { withDeadline } from '../../../src/hub/pipeline/deadline.ts'
import { ofWatches } from '../../../src/hub/pipeline/pipeline.ts'
import { emptyReply, exchangeOf } from '../../kit/exchange.ts'

const pods = '/api/v1/namespaces/default/pods'

/** A hub that is not stopping. */
const running = new AbortController().signal

void t.test('a watch is ended fifteen seconds after its time, and not before', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let signal: AbortSignalLike | undefined
  const handle = ofWatches(withDeadline(running))(async (exchange) => {
    signal = exchange.signal
    return emptyReply
  })
  await handle(exchangeOf(`${pods}?watch=true&timeoutSeconds=300`))
  mock.timers.tick(314_999)
  t.equal(signal?.aborted, false)
  mock.timers.tick(1)
  t.equal(signal?.aborted, true)
})

void t.test('a watch that has not begun by its deadline is answered with a timeout', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const client = new AbortController()
  const given = ofWatches(withDeadline(running))(
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
  const handle = ofWatches(withDeadline(running))(async ({ signal }) => {
    signal.addEventListener('abort', () => reasons.push(signal.reason))
    return emptyReply
  })
  await handle(exchangeOf(`${pods}?watch=true&timeoutSeconds=1`, { signal: client.signal }))
  client.abort('the client has gone')
  mock.timers.tick(60_000)
  t.strictSame(reasons, ['the client has gone'])
})

void t.test('a watch without a valid timeoutSeconds has no deadline, nor has a list', async (t) => {
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
    let signal: AbortSignalLike | undefined
    await ofWatches(withDeadline(running))(async (exchange) => {
      signal = exchange.signal
      return emptyReply
    })(exchangeOf(url))
    mock.timers.tick(100_000_000)
    t.equal(signal?.aborted, false, url)
  }
})

void t.test('a watch ends when the hub stops', async (t) => {
  const stopping = new AbortController()
  let signal: AbortSignalLike | undefined
  await withDeadline(stopping.signal)(async (exchange) => {
    signal = exchange.signal
    return emptyReply
  })(exchangeOf(`${pods}?watch=true`))
  t.equal(signal?.aborted, false)
  stopping.abort()
  t.equal(signal?.aborted, true)
})
