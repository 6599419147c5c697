import t from 'tap'
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import type { BodyReply, Claim, Exchange } from '../../../src/http/exchange/exchange.ts'
import { StatusError } from '../../../src/api/kube/status.ts'
import { Admission, type ShedReason } from '../../../src/hub/pipeline/admission.ts'
import type { PriorityLevel } from '../../../src/hub/pipeline/priority-levels.ts'
import { claimOf, emptyReply, exchangeOf } from '../../kit/exchange.ts'

const pods = '/api/v1/namespaces/default/pods'

const admission = (most: number, onShed: ConstructorParameters<typeof Admission>[2]): Admission =>
  new Admission(
    () => most,
    1024 ** 3,
    onShed,
    () => 0,
  )

const withSeats = (...args: Parameters<typeof admission>) => admission(...args).admitting

void t.test('long-running requests are never shed', async (t) => {
  const lasting = [
    `${pods}?watch=true`,
    `${pods}/a/log`,
    `${pods}/a/exec`,
    `${pods}/a/attach`,
    `${pods}/a/portforward`,
    '/api/v1/namespaces/default/services/a/proxy/x',
  ]
  const short = [pods, `${pods}/a`, `${pods}/a/status`, '/healthz', '/apis', `${pods}?watch=false`]
  const handle = withSeats(0, () => undefined)(async () => emptyReply)
  for (const url of lasting) t.equal(await handle(exchangeOf(url)), emptyReply, url)
  for (const url of short) t.throws(() => void handle(exchangeOf(url)), StatusError, url)
})

void t.test('a short request counts until its answer is over', async (t) => {
  let rejected = 0
  const handle = withSeats(2, () => rejected++)(async () => emptyReply)
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

const codeOf = (answer: Promise<unknown>): Promise<number | undefined> =>
  answer.then(
    () => undefined,
    (error: unknown) => (error as StatusError).status.code,
  )

void t.test('a request takes its seat once its body has arrived', async (t) => {
  const handle = withSeats(1, () => undefined)(afterBody)
  const [first, second] = [posting(), posting()]
  const answers = [first, second].map(({ exchange }) => handle(exchange))
  const read = new AbortController()
  t.equal(await handle(exchangeOf(pods, { signal: read.signal })), emptyReply)
  read.abort()
  first.body.end('x')
  t.equal(await answers[0], emptyReply)
  t.throws(() => void handle(exchangeOf(pods)), StatusError)
  second.body.end('x')
  t.equal(await answers[1], emptyReply, 'whether there is one or not')
  first.over.abort()
  t.throws(() => void handle(exchangeOf(pods)), StatusError)
  second.over.abort()
  t.equal(await handle(exchangeOf(pods)), emptyReply)
})

void t.test('a body that is not whole within a minute is given up', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const shed: ShedReason[] = []
  const handle = withSeats(1, (reason) => shed.push(reason))(afterBody)
  const answer = codeOf(handle(posting().exchange))
  mock.timers.tick(59_999)
  t.strictSame(shed, [])
  mock.timers.tick(1)
  t.equal(await answer, 504)
  t.strictSame(shed, ['slow-body'])
})

const unproven = claimOf()

void t.test('a watch of an unproven caller has a seat until it has begun', async (t) => {
  const shed: [ShedReason, PriorityLevel][] = []
  const begins: (() => void)[] = []
  const { seats, admitting } = admission(10, (...args) => shed.push(args))
  const handle = admitting(() => new Promise((resolve) => begins.push(() => resolve(emptyReply))))
  const watch = { ...exchangeOf(`${pods}?watch=true`), claim: unproven }
  const first = handle(watch)
  t.throws(() => void handle(watch), StatusError)
  t.throws(() => void handle({ ...exchangeOf(pods), claim: unproven }), StatusError)
  t.strictSame(shed, [
    ['in-flight', 'unproven'],
    ['in-flight', 'unproven'],
  ])
  begins[0]?.()
  await first
  t.equal(seats.taken('unproven'), 0)
  void handle(watch)
  t.equal(seats.taken('unproven'), 1)
})

void t.test('a long answer to a new token holds a seat of the level it has proved', async (t) => {
  let proven = false
  const claim: Claim = { ...unproven, holds: () => proven }
  const over = new AbortController()
  const { seats, admitting } = admission(10, () => t.fail('nothing is shed'))
  const handle = admitting(async () => {
    t.equal(seats.taken('unproven'), 1)
    proven = true
    return emptyReply
  })
  await handle({ ...exchangeOf(pods, { signal: over.signal }), claim })
  t.strictSame([seats.taken('unproven'), seats.taken('workload')], [0, 1])
  over.abort()
  t.equal(seats.taken('workload'), 0)
})

void t.test('an upgrade of an unproven caller has a seat until it is answered', async (t) => {
  const { promise: answered, resolve } = Promise.withResolvers<number>()
  const { seats, admitting } = admission(10, () => t.fail('nothing is shed'))
  const handle = admitting(async () => ({
    kind: 'upgrade',
    from: 'cloud',
    take: () => undefined,
    finalStatus: answered,
  }))
  await handle({ ...exchangeOf(`${pods}/a/exec`, { upgrade: true }), claim: unproven })
  t.equal(seats.taken('unproven'), 1)
  resolve(401)
  await answered
  t.equal(seats.taken('unproven'), 0)
})
