import { Agent, get } from 'node:http'
import { until } from '../kit/until.ts'

export interface Read {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * One answer, in milliseconds of `performance.now`. A request is sent when it has a connection: how
 * long it waited for one before says how fast the load's own machine is.
 */
interface Sample {
  readonly sentAt: number
  readonly answeredAt: number
}

/**
 * Asks at a steady rate whether or not answers come, as many clients do that know nothing of each
 * other. Each takes anything but a whole answer with status 200 for an error.
 */
export class Load {
  readonly errors: string[] = []
  readonly samples: Sample[] = []
  // A node's programs keep the few connections they have.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #origin: string
  readonly #reads: readonly Read[]
  readonly #timer: NodeJS.Timeout
  readonly #startedAt = performance.now()
  readonly #pending = new Set<Promise<void>>()
  #sent = 0

  constructor(origin: string, reads: readonly Read[], perSecond: number) {
    this.#origin = origin
    this.#reads = reads
    this.#timer = setInterval(() => {
      const due = ((performance.now() - this.#startedAt) / 1000) * perSecond
      while (this.#sent < due) this.#send()
    }, 5)
  }

  /** Resolves when so many more requests have been sent and answered. */
  async answered(count: number): Promise<void> {
    const since = performance.now()
    await until(`${count} answers`, () => this.between(since, performance.now()).count >= count)
  }

  /** Resolves when the last answer has come. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#pending)
    this.#agent.destroy()
  }

  /**
   * How the requests fared that were sent between two times: how many, the first answer after the
   * beginning, the slowest.
   */
  between(from: number, to: number): { count: number; nextMs: number; slowestMs: number } {
    const sent = this.samples.filter(({ sentAt }) => sentAt >= from && sentAt < to)
    return {
      count: sent.length,
      nextMs: Math.min(...sent.map(({ answeredAt }) => answeredAt - from)),
      slowestMs: Math.max(...sent.map(({ sentAt, answeredAt }) => answeredAt - sentAt)),
    }
  }

  #send(): void {
    const read = this.#reads[this.#sent % this.#reads.length]
    this.#sent += 1
    if (read === undefined) return
    const asked = this.#ask(read).then(
      (sentAt) => void this.samples.push({ sentAt, answeredAt: performance.now() }),
      (error: unknown) =>
        void this.errors.push(`${read.headers['user-agent']} ${read.path}: ${error}`),
    )
    this.#pending.add(asked)
    void asked.finally(() => this.#pending.delete(asked))
  }

  /** Resolves with the time at which it was sent, when it is answered. */
  #ask({ path, headers }: Read): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    let sentAt = performance.now()
    const options = { agent: this.#agent, headers, timeout: 15_000 }
    const request = get(new URL(path, this.#origin), options, (response) => {
      const start: Buffer[] = []
      response.on('data', (chunk: Buffer) => start.length < 4 && start.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(sentAt)
        else reject(new Error(`${response.statusCode} ${Buffer.concat(start)}`))
      })
    })
    request.on('socket', () => {
      sentAt = performance.now()
    })
    request.on('error', reject)
    request.on('timeout', () => request.destroy(new Error('silence for 15 s')))
    return promise
  }
}
