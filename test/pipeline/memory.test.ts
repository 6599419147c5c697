import t from 'tap'
import type { BytesReply, Exchange, Sink, WireReply } from '../../src/exchange/exchange.ts'
import { HeaderList } from '../../src/exchange/headers.ts'
import type { Shed } from '../../src/pipeline/in-flight.ts'
import { MemoryBudget } from '../../src/pipeline/memory.ts'
import { exchangeOf } from '../kit/exchange.ts'

const pods = '/api/v1/pods'
const limit = 2_000

/** One request through a budget: the test lets bytes come from the cloud, and go to the client. */
class Through {
  readonly over = new AbortController()
  readonly answer: Promise<number>
  #from: Sink | undefined
  #to: Sink | undefined

  constructor(budget: MemoryBudget, url: string) {
    const exchange = { ...exchangeOf(url, { signal: this.over.signal }), id: `${id++}` }
    const cloud = async (): Promise<BytesReply> => ({
      ...head,
      source: budget.received(exchange.id, (sink) => {
        this.#from = sink
        return () => undefined
      }),
    })
    // What is between waits for all of an answer, and then hands it on.
    const between = async (asked: Exchange): Promise<WireReply> => {
      const reply = (await budget.shedding(cloud)(asked)) as BytesReply
      reply.source({ ...nowhere })
      return {
        ...head,
        source: (sink) => {
          this.#to = sink
          return () => undefined
        },
      }
    }
    this.answer = budget
      .sending(between)(exchange)
      .then(
        (reply) => {
          if (reply.kind === 'bytes') reply.source({ ...nowhere })
          return 200
        },
        (error: { status: { code: number } }) => error.status.code,
      )
  }

  async comes(bytes: number): Promise<void> {
    await this.answer
    this.#from?.write(Buffer.alloc(bytes))
  }

  goes(bytes: number): void {
    this.#to?.write(Buffer.alloc(bytes))
  }
}

let id = 0
const head = { kind: 'bytes', status: 200, headers: new HeaderList(), from: 'cloud' } as const
const nowhere: Sink = {
  write: () => true,
  drained: () => Promise.resolve(),
  end: () => undefined,
  fail: () => undefined,
}

void t.test('short requests are shed before memory goes, and watches are not', async (t) => {
  const shed: Shed[] = []
  const budget = new MemoryBudget(
    limit,
    (reason) => shed.push(reason),
    () => 0,
  )
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
  first.over.abort()
  t.equal(budget.held, 0, 'nor is what nobody waits for')
})

void t.test('where answers under way grow too large, the largest is ended', async (t) => {
  const budget = new MemoryBudget(
    limit,
    () => undefined,
    () => 0,
  )
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
    const budget = new MemoryBudget(
      limit,
      () => undefined,
      () => limit + 1,
    )
    const served = Array.from({ length: 4 }, () => new Through(budget, pods))
    for (const each of served) t.equal(await each.answer, 200)
    t.equal(await new Through(budget, pods).answer, 429)
    t.equal(await new Through(budget, `${pods}?watch=true`).answer, 200)
    served[0]?.over.abort()
    t.equal(await new Through(budget, pods).answer, 200)
  },
)

void t.test('a body counts by what it says to be, as far as an API server takes it', async (t) => {
  const budget = new MemoryBudget(
    64 * 1024 * 1024,
    () => undefined,
    () => 0,
  )
  const megabyte = 1024 * 1024
  const { body } = new Response('x') as unknown as { body: Exchange['body'] }
  for (const [length, held] of [
    ['1048576', megabyte],
    ['99999999999', 3 * megabyte],
    [undefined, 64 * 1024],
  ] as const) {
    const over = new AbortController()
    const headers = length === undefined ? {} : { 'Content-Length': length }
    const exchange = exchangeOf(pods, { method: 'POST', headers, signal: over.signal })
    await budget.shedding(async () => ({ ...head, source: () => () => undefined }))({
      ...exchange,
      ...(body && { body }),
    })
    t.equal(budget.held, held)
    over.abort()
  }
})
