import t from 'tap'
import { PassThrough } from 'node:stream'
import { mock } from 'node:test'
import type { BodyReply, Claim, Exchange } from '../../../src/http/exchange/exchange.ts'
import { StatusError, type Status } from '../../../src/api/kube/status.ts'
import { Admission, type ShedReason } from '../../../src/hub/pipeline/admission.ts'
import type { PriorityLevel } from '../../../src/hub/pipeline/priority-levels.ts'
import { parseRequestInfo } from '../../../src/api/request/request-info.ts'
import { claimOf, emptyReply, exchangeOf } from '../../kit/exchange.ts'
import { until } from '../../kit/until.ts'

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

const statusOf = async (answer: Promise<unknown>): Promise<Status | undefined> => {
  try {
    await answer
    return undefined
  } catch (error) {
    return (error as StatusError).status
  }
}

const codeOf = async (answer: Promise<unknown>): Promise<number | undefined> =>
  (await statusOf(answer))?.code

const urlOf = (url: string): Pick<Exchange, 'url' | 'info'> => ({
  url,
  info: parseRequestInfo('POST', url),
})

void t.test('the oldest slow body makes room for any other request', async (t) => {
  const shed: ShedReason[] = []
  const handle = withSeats(2, (reason) => shed.push(reason))(afterBody)
  const [first, second, third] = [posting(), posting(), posting()]
  const answers = [first, second, third].map(({ exchange }) => handle(exchange))
  t.equal(await codeOf(answers[0] as Promise<unknown>), 429)
  const read = new AbortController()
  t.equal(await handle(exchangeOf(pods, { signal: read.signal })), emptyReply)
  t.equal(await codeOf(answers[1] as Promise<unknown>), 429)
  t.strictSame(shed, ['slow-body', 'slow-body'])
  third.body.end('x')
  t.equal(await answers[2], emptyReply)
  t.throws(() => void handle(exchangeOf(pods)), StatusError, 'a body that is whole stays')
  third.over.abort()
  t.equal(await handle(exchangeOf(pods)), emptyReply)
})

void t.test('no body is given up where that makes no room', async (t) => {
  const shed: ShedReason[] = []
  let size = 0
  const limited = new Admission(
    () => 8,
    1 << 20,
    (reason) => shed.push(reason),
    () => size,
  )
  const handle = limited.admitting(afterBody)
  for (let i = 0; i < 4; i++) await handle(exchangeOf(pods))
  const slow = [posting(), posting()]
  const answers = slow.map(({ exchange }) => handle(exchange))
  size = (1 << 20) + 1
  await until('fewer seats', () => limited.seats.limit('node') === 4)
  t.throws(() => void handle(exchangeOf(pods)), StatusError)
  t.strictSame(shed, ['memory'])
  for (const { body } of slow) body.end('x')
  for (const answer of answers) t.equal(await answer, emptyReply)
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

void t.test('a body whose client left during authentication is not waited for', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const shed: ShedReason[] = []
  const handle = withSeats(1, (reason) => shed.push(reason))(afterBody)
  const { exchange, over } = posting()
  over.abort()
  void handle(exchange)
  mock.timers.tick(60_000)
  t.strictSame(shed, [])
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

void t.test(
  'a body of a lower level makes room for one of a higher, never the reverse',
  async (t) => {
    const shed: [ShedReason, PriorityLevel][] = []
    const handle = withSeats(4, (...args) => shed.push(args))(afterBody)
    const ofNode = [posting(), posting()]
    const answers = ofNode.map(({ exchange }) => handle(exchange))
    const refused = Array.from({ length: 5 }, () =>
      codeOf(handle({ ...posting().exchange, claim: unproven })),
    )
    t.strictSame(await Promise.all(refused.slice(0, 4)), [429, 429, 429, 429])
    for (let i = 0; i < 2; i++) {
      const more = posting()
      ofNode.push(more)
      answers.push(handle(more.exchange))
    }
    t.equal(await refused[4], 429)
    t.strictSame(shed, Array<unknown>(5).fill(['slow-body', 'unproven']))
    for (const { body } of ofNode) body.end('x')
    for (const answer of answers) t.equal(await answer, emptyReply)
  },
)

void t.test('a slow write that was sent in part gets 504 without Retry-After', async (t) => {
  const handle = withSeats(
    2,
    () => undefined,
  )(async (exchange) => {
    if (exchange.url === pods) exchange.follower?.sent()
    return afterBody(exchange)
  })
  const [sent, token] = [posting(), posting()]
  const tokenPath = '/api/v1/namespaces/default/serviceaccounts/a/token'
  const unsent = { ...posting().exchange, url: '/api/v1/nodes' }
  const endings = [handle(sent.exchange), handle({ ...token.exchange, ...urlOf(tokenPath) })]
  void endings.push(handle(unsent))
  for (let i = 0; i < 3; i++) void codeOf(handle(posting().exchange))
  const [ofSent, ofToken, ofUnsent] = await Promise.all(endings.map(statusOf))
  t.match(ofSent, { code: 504, reason: 'Timeout' })
  t.equal(ofSent?.details?.retryAfterSeconds, undefined)
  t.match(ofToken, { code: 429 }, 'a second token does no harm')
  t.match(ofUnsent, { code: 429, details: { retryAfterSeconds: 1 } })
})
