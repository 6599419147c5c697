import t from 'tap'
import { PassThrough } from 'node:stream'
import type { BytesReply, Claim, Exchange } from '../../../src/http/exchange/exchange.ts'
import { untilAborted } from '../../../src/base/abort.ts'
import { WaitingClient } from '../../../src/http/server/answer.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { StatusError } from '../../../src/api/kube/status.ts'
import { Admission, type ShedReason } from '../../../src/hub/pipeline/admission.ts'
import type { PriorityLevel } from '../../../src/hub/pipeline/priority-levels.ts'
import { claimOf, exchangeOf } from '../../kit/exchange.ts'

const pods = '/api/v1/pods'
const limit = 2_000

interface Budget {
  /** For the process, half of it for requests. */
  readonly bytes?: number
  /** Of the process. */
  readonly size?: number
  readonly onShed?: (reason: ShedReason, level: PriorityLevel) => void
}

/** One with seats for all. */
const admission = ({ bytes = limit, size = 0, onShed = () => undefined }: Budget = {}): Admission =>
  new Admission(
    () => 1_000,
    bytes,
    onShed,
    () => size,
  )

let id = 0

interface Asking {
  readonly method?: string
  readonly claim?: Claim
  /** When the head of the answer comes; default at once. */
  readonly answers?: Promise<void>
}

/** One request through a budget: the test lets bytes come from the cloud, and go to the client. */
class Through {
  readonly over = new WaitingClient()
  readonly answer: Promise<number>
  readonly id = `${id++}`
  #follower: Exchange['follower']

  constructor(budget: Admission, url: string, { method = 'GET', claim, answers }: Asking = {}) {
    const exchange: Exchange = {
      ...exchangeOf(url, { method, signal: this.over }),
      client: this.over,
      id: this.id,
      ...(claim && { claim }),
    }
    const cloud = async ({ follower, signal }: Exchange): Promise<BytesReply> => {
      follower?.sent()
      this.#follower = follower
      const ended = untilAborted(signal)
      await (answers && Promise.race([answers, ended]))
      signal.throwIfAborted()
      return { ...head, source: () => () => undefined }
    }
    const asked = async (): Promise<number> => {
      await budget.admitting(cloud)(exchange)
      return 200
    }
    this.answer = asked().catch((error: { status: { code: number } }) => error.status.code)
  }

  async comes(bytes: number): Promise<void> {
    await this.answer
    this.receives(bytes)
  }

  receives(bytes: number): void {
    this.#follower?.received(bytes)
  }

  goes(bytes: number): void {
    this.over.wrote(bytes)
  }
}

const head = { kind: 'bytes', status: 200, headers: new HeaderList(), from: 'cloud' } as const

void t.test('short requests are shed before memory goes, and watches are not', async (t) => {
  const shed: ShedReason[] = []
  const budget = admission({ onShed: (reason) => shed.push(reason) })
  const first = new Through(budget, pods)
  await first.comes(limit / 2)
  t.equal(await new Through(budget, pods).answer, 429)
  t.strictSame(shed, ['memory'])
  t.equal(await new Through(budget, `${pods}?watch=true`).answer, 200)
  first.goes(1)
  t.equal(
    await new Through(budget, pods).answer,
    200,
    'what has gone to the client is held no longer',
  )
  first.over.abort(undefined)
  t.equal(budget.held, 0, 'nor is an answer without a client')
})

void t.test('where answers in memory grow too large, the largest is ended', async (t) => {
  const budget = admission()
  const [small, large] = [new Through(budget, pods), new Through(budget, pods)]
  await small.comes(300)
  await large.comes(701)
  t.equal(budget.held, 300)
  await small.comes(1)
  t.equal(budget.held, 301)
})

void t.test(
  'while the process is too large only a few short requests are served at a time',
  async (t) => {
    const budget = admission({ size: limit + 1 })
    const served = Array.from({ length: 4 }, () => new Through(budget, pods))
    for (const each of served) t.equal(await each.answer, 200)
    t.equal(await new Through(budget, pods).answer, 429)
    t.equal(await new Through(budget, `${pods}?watch=true`).answer, 200)
    served[0]?.over.abort(undefined)
    t.equal(await new Through(budget, pods).answer, 200)
  },
)

void t.test('a body counts by its Content-Length, up to an API server’s limit', async (t) => {
  const budget = admission({ bytes: 64 * 1024 * 1024 })
  const megabyte = 1024 * 1024
  const body = new PassThrough()
  for (const [length, held] of [
    ['1048576', megabyte],
    ['99999999999', 3 * megabyte],
    [undefined, 64 * 1024],
  ] as const) {
    const over = new AbortController()
    const headers = length === undefined ? {} : { 'Content-Length': length }
    const exchange = exchangeOf(pods, { method: 'POST', headers, signal: over.signal })
    await budget.admitting(async () => ({ ...head, source: () => () => undefined }))({
      ...exchange,
      body,
    })
    t.equal(budget.held, held)
    over.abort()
  }
})

const unproven = { claim: claimOf() }
const workload = { claim: claimOf({ holds: () => true }) }

void t.test(
  'each level has its share, and what the lower ones take is not the higher’s',
  async (t) => {
    const shed: [ShedReason, PriorityLevel][] = []
    const budget = admission({ onShed: (...args) => shed.push(args) })
    const ofUnproven = new Through(budget, pods, unproven)
    await ofUnproven.comes(100)
    t.equal(await new Through(budget, pods, unproven).answer, 429)
    const ofWorkload = new Through(budget, pods, workload)
    await ofWorkload.comes(650)
    t.equal(await new Through(budget, pods, workload).answer, 429)
    const ofNode = new Through(budget, pods)
    await ofNode.comes(250)
    t.equal(budget.held, 1_000)
    await ofUnproven.comes(1)
    t.equal(budget.held, 900, 'the one that grew is ended, and none of a higher level')
    await ofNode.comes(101)
    t.equal(budget.held, 351, 'the node’s goes last')
    t.strictSame(shed, [
      ['memory', 'unproven'],
      ['memory', 'workload'],
      ['memory', 'unproven'],
      ['memory', 'workload'],
    ])
  },
)

void t.test('a body for which there is no room ends no other request', async (t) => {
  const budget = admission({ bytes: 4 * 1024 * 1024 })
  const large = new Through(budget, pods)
  await large.comes(1024 * 1024)
  const body = new PassThrough()
  const headers = { 'Content-Length': '1500000' }
  const exchange = { ...exchangeOf(pods, { method: 'POST', headers }), body }
  const serve = budget.admitting(() => Promise.reject(new Error('it is shed')))
  t.throws(() => void serve(exchange), StatusError)
  t.equal(budget.held, 1024 * 1024)
})

void t.test('a write that was sent is ended last, and its client may not repeat it', async (t) => {
  const budget = admission()
  const { promise: never } = Promise.withResolvers<void>()
  const write = new Through(budget, '/api/v1/namespaces/default/pods', { method: 'POST' })
  const [small, large] = [new Through(budget, pods), new Through(budget, pods)]
  await write.comes(600)
  await small.comes(150)
  await large.comes(251)
  t.equal(budget.held, 750, 'a read goes first, though it holds less')
  await write.comes(251)
  t.equal(budget.held, 851)
  await write.comes(150)
  t.equal(budget.held, 0, 'alone it is too much')
  // One whose answer has not come gets a status.
  const unanswered = new Through(budget, pods, { method: 'POST', answers: never })
  const reading = new Through(budget, pods, { answers: never })
  unanswered.receives(600)
  reading.receives(500)
  t.equal(await reading.answer, 429)
  unanswered.receives(500)
  t.equal(await unanswered.answer, 504)
})

void t.test(
  'where the process is too large, node and workload have seats of their own',
  async (t) => {
    const budget = admission({ size: limit + 1 })
    const codes = async (count: number, asking: Asking): Promise<number[]> => {
      const all: number[] = []
      for (let i = 0; i < count; i++) all.push(await new Through(budget, pods, asking).answer)
      return all
    }
    t.strictSame(await codes(3, unproven), [200, 429, 429])
    t.strictSame(await codes(3, workload), [200, 200, 429])
    t.strictSame(await codes(2, {}), [200, 429])
  },
)
