import { LightAbort, onAbort } from '../base/abort.ts'
import { every } from '../base/clock.ts'
import type { Incoming } from '../http/exchange/exchange.ts'
import { wholeRequestBody } from '../http/exchange/request-body.ts'
import { requestEntityTooLarge, StatusError, timeout, tooManyRequests } from '../api/kube/status.ts'

/**
 * An object is 1.5 MB at most in etcd, and an update is sent with the object before it; the API
 * server cuts no list to be converted.
 */
export const largestBody = 8 * 1024 * 1024

/** The least that a body counts, as it takes memory besides its bytes. */
export const leastBytes = 128 * 1024

/** How many requests may wait for their turn; more are refused at once. */
export const mostQueued = 256

/**
 * The interval of checks. Time is counted in these ticks: a process that did not run itself does
 * not blame its clients.
 */
export const tickMs = 250

/**
 * For how many ticks a request waits for its turn, and a body may be without a byte: 2 s each. API
 * servers wait 5 s for admission.
 */
export const queueTicks = 8
export const idleTicks = 8

/**
 * For how many ticks a body may arrive while no request waits (10 s), and after how many it makes
 * room for one that does (1 s).
 */
export const arrivalTicks = 40
export const graceTicks = 4

/** Why a body was not read, or not to its end. */
export type ShedReason = 'full' | 'slow-body'

/** A whole body. Its bytes count until it is disposed of. */
export interface ReviewBody extends Disposable {
  readonly content: Buffer
}

/** A body that counts. */
interface AdmittedBody {
  readonly address: string
  readonly bytes: number
  readonly end: LightAbort
  isWhole: boolean
  ticks: number
  silent: number
}

interface QueuedBody {
  readonly address: string
  readonly bytes: number
  readonly turn: PromiseWithResolvers<AdmittedBody>
  ticks: number
}

/**
 * Reads the bodies of reviews within one budget of bytes. A body counts by its announced length.
 * Where there is no room, it waits; of those that fit, the address with the fewest bytes has the
 * next turn. A body that is still arriving after a second makes room, first that of the address
 * with the most bytes: bodies of API servers arrive at once. So clients that announce bodies and do
 * not send them end with 429 or 504, and do not block other addresses.
 */
export class ReviewBodies implements Disposable {
  readonly #most: number
  readonly #onShed: (why: ShedReason) => void
  readonly #counted = new Set<AdmittedBody>()
  readonly #waiting = new Set<QueuedBody>()
  #bytes = 0
  #ticking: Disposable | undefined

  /**
   * All bodies that are read or reviewed may have `most` bytes together, which is at least the
   * largest body.
   */
  constructor(most: number, onShed: (why: ShedReason) => void) {
    this.#most = Math.max(most, largestBody)
    this.#onShed = onShed
  }

  /** Throws 413, 429 or 504, or fails with the request where its client has gone. */
  async read({ body, headers, peer, signal }: Incoming): Promise<ReviewBody> {
    if (!body) return { content: Buffer.alloc(0), [Symbol.dispose]: () => undefined }
    const announced = Number(headers.get('content-length') ?? largestBody)
    if (!(announced <= largestBody))
      throw new StatusError(requestEntityTooLarge(`limit is ${largestBody}`))
    const waiting = this.#queue(peer.address, Math.max(announced, leastBytes))
    using gone = onAbort(signal, () => this.#refuse(waiting, signal.reason as Error))
    const counted = await waiting.turn.promise
    gone[Symbol.dispose]()
    using _ended = onAbort(signal, () => counted.end.abort(signal.reason))
    try {
      const content = await wholeRequestBody(body, counted.bytes, {
        signal: counted.end,
        onPart: () => (counted.silent = 0),
      })
      counted.isWhole = true
      return { content, [Symbol.dispose]: () => this.#release(counted) }
    } catch (cause) {
      this.#release(counted)
      throw cause
    }
  }

  #queue(address: string, bytes: number): QueuedBody {
    const waiting = { address, bytes, turn: Promise.withResolvers<AdmittedBody>(), ticks: 0 }
    this.#waiting.add(waiting)
    this.#admit()
    if (this.#waiting.size > mostQueued) this.#refuseLatest()
    this.#ticking ??= every(tickMs, () => this.#tick())
    return waiting
  }

  /**
   * Admits all for which there is room: an address with fewer bytes goes first, each address in
   * turn. A body that does not fit yet does not block one that does.
   */
  #admit(): void {
    for (;;) {
      const next = this.#next()
      if (!next) return
      this.#waiting.delete(next)
      const { address, bytes } = next
      const end = new LightAbort()
      const counted = { address, bytes, end, isWhole: false, ticks: 0, silent: 0 }
      this.#counted.add(counted)
      this.#bytes += bytes
      next.turn.resolve(counted)
    }
  }

  #next(): QueuedBody | undefined {
    const held = heldBy(this.#counted)
    let next: QueuedBody | undefined
    for (const each of this.#waiting) {
      if (this.#bytes + each.bytes > this.#most) continue
      if (!next || (held.get(each.address) ?? 0) < (held.get(next.address) ?? 0)) next = each
    }
    return next
  }

  #release(counted: AdmittedBody): void {
    if (!this.#counted.delete(counted)) return
    this.#bytes -= counted.bytes
    this.#admit()
  }

  /** The latest of the address that waits most makes room for the others. */
  #refuseLatest(): void {
    const most = mostOf(heldBy([...this.#waiting].map(({ address }) => ({ address, bytes: 1 }))))
    const latest = [...this.#waiting].findLast(({ address }) => address === most)
    if (latest) this.#refuse(latest, this.#full())
  }

  #refuse(waiting: QueuedBody, why: Error): void {
    if (this.#waiting.delete(waiting)) waiting.turn.reject(why)
  }

  #full(): StatusError {
    this.#onShed('full')
    return new StatusError(tooManyRequests('too many reviews at once, please try again later', 1))
  }

  #tick(): void {
    for (const counted of this.#counted) {
      if (counted.isWhole) continue
      counted.ticks++
      counted.silent++
      if (counted.silent > idleTicks || counted.ticks > arrivalTicks)
        this.#end(counted, timeout('the body of the review did not arrive in time'))
    }
    this.#makeRoom()
    for (const waiting of this.#waiting) {
      waiting.ticks++
      if (waiting.ticks > queueTicks) this.#refuse(waiting, this.#full())
    }
    if (this.#counted.size + this.#waiting.size > 0) return
    this.#ticking?.[Symbol.dispose]()
    this.#ticking = undefined
  }

  /** Ends bodies that have been on their way for long, until none waits. */
  #makeRoom(): void {
    while (this.#waiting.size > 0) {
      const slow = [...this.#counted].filter(({ isWhole, ticks }) => !isWhole && ticks > graceTicks)
      const most = mostOf(heldBy(slow))
      const oldest = slow.find(({ address }) => address === most)
      if (!oldest) return
      this.#end(oldest, tooManyRequests('too many reviews at once, please send faster', 1))
    }
  }

  #end(counted: AdmittedBody, why: StatusError['status']): void {
    this.#onShed('slow-body')
    counted.end.abort(new StatusError(why))
    this.#release(counted)
  }

  /** Stops the checks, for a listener that has closed. */
  [Symbol.dispose](): void {
    this.#ticking?.[Symbol.dispose]()
  }
}

interface BodySize {
  readonly address: string
  readonly bytes: number
}

function heldBy(all: Iterable<BodySize>): ReadonlyMap<string, number> {
  const held = new Map<string, number>()
  for (const { address, bytes } of all) held.set(address, (held.get(address) ?? 0) + bytes)
  return held
}

/** The address that has most; the first of several. */
const mostOf = (held: ReadonlyMap<string, number>): string | undefined =>
  [...held].reduce<readonly [string, number] | undefined>(
    (most, each) => (most === undefined || each[1] > most[1] ? each : most),
    undefined,
  )?.[0]
