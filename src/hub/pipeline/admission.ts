import { onAbort } from '../../base/abort.ts'
import { after, elapsed } from '../../base/clock.ts'
import { OpenList } from '../../base/open-list.ts'
import {
  isProven,
  type Exchange,
  type Handler,
  type Reply,
  type RequestFollower,
} from '../../http/exchange/exchange.ts'
import { StatusError, timeout, tooManyRequests, type Status } from '../../api/kube/status.ts'
import { changesNothing, isLongRunning } from '../../api/request/request-info.ts'
import {
  priorityLevelOf,
  priorityLevels,
  PriorityShares,
  type PriorityLevel,
} from './priority-levels.ts'

/** Why a request was shed. */
export type ShedReason = 'in-flight' | 'slow-body' | 'memory'

type OnShed = (reason: ShedReason, level: PriorityLevel) => void

/**
 * Whether a request is short, and may be shed. Watches, logs and upgrades are not: a node needs
 * every one of its watches.
 */
export const isShort = ({ info, upgrade }: Exchange): boolean => !isLongRunning(info) && !upgrade

/**
 * How long a body may take: as long as an API server gives a whole short request
 * (--request-timeout).
 */
export const bodyMs = 60_000

/** The size that a request body of unknown length counts as. */
const unknownBytes = 64 * 1024

/**
 * The largest body that an API server accepts (apiserver pkg/server/config.go,
 * MaxRequestBodyBytes).
 */
const largestBody = 3 * 1024 * 1024

/** The share of the process's memory for short requests; the rest is the process itself. */
export const requestsShare = 1 / 2

/** The seats while the process is too large: it shrinks only while it works. */
export const alwaysServed = 4

/** The process's size is measured at most so often. */
const sampleMs = 250

/** A request that has a seat. */
class Admitted implements RequestFollower {
  readonly exchange: Exchange
  level: PriorityLevel
  /** The bytes that it holds. */
  bytes: number
  readonly #add: (one: Admitted, bytes: number) => void
  /** Its body is still arriving; gives up waiting for that. */
  arriving: Disposable | undefined
  /** What comes for it later is not counted. */
  isHeld = true
  #isSent = false
  #reject: ((reason: StatusError) => void) | undefined

  constructor(
    exchange: Exchange,
    level: PriorityLevel,
    bytes: number,
    add: (one: Admitted, bytes: number) => void,
  ) {
    this.exchange = exchange
    this.level = level
    this.bytes = bytes
    this.#add = add
  }

  sent(): void {
    this.#isSent = true
  }

  received(bytes: number): void {
    this.#add(this, bytes)
  }

  /** Bytes that were written to the client are no longer held. */
  written(bytes: number): void {
    this.#add(this, -bytes)
  }

  /** The answer, which `end` may have replaced: what waits for a body heeds no signal. */
  unlessEnded(answer: Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      answer.then(resolve, reject)
    })
  }

  /**
   * Whether the client may safely repeat the request: it is a read, or no API server has received
   * any of it.
   */
  get repeatable(): boolean {
    return !this.#isSent || changesNothing(this.exchange)
  }

  /**
   * Answers with `refusal`, which may make the client repeat the request, or where the request is
   * not repeatable with `unknown`, which must not. An answer that has begun is broken off instead.
   */
  end(refusal: Status, unknown: Status): void {
    const reason = new StatusError(this.repeatable ? refusal : unknown)
    this.#reject?.(reason)
    this.exchange.client?.abort(reason)
  }
}

const tooMany = tooManyRequests('too many requests at once, please try again later', 1)

const tooSlow = tooManyRequests('too many requests at once, please send faster', 1)

/** Part of it was sent upstream: with Retry-After the client would repeat that part. */
const sentInPart = timeout(
  'too many requests at once, and the body of this one had not arrived whole',
)

const tooLate = timeout('the body of the request did not arrive in time')

const tooLittle = tooManyRequests('the hub is short of memory, please try again later', 1)

const unknownFate = timeout(
  'the hub is short of memory and waits no longer for the API server: whether the write took effect is unknown',
)

/**
 * Gives short requests seats and memory, each priority level its share of both; those without
 * either are answered 429, and none is queued.
 *
 * A request whose body is still arriving keeps its seat only while no other needs it, so that slow
 * senders keep out no other. A long-running request takes a seat only while its caller is unproven
 * and it has not begun: otherwise a caller could open any number of watches with a token that an
 * API server is slow to refuse.
 *
 * The memory is that of request bodies, and of bytes that came from an API server and have not been
 * sent to the client: half of `limitBytes`. Where requests in flight grow beyond it, the one that
 * holds most is ended with 429. A write that an API server has received is ended last, with 504 as
 * its result is unknown: its client must not repeat it. While the whole process is larger than
 * `limitBytes` there are `alwaysServed` seats. `SlowWatches` bounds watches.
 */
export class Admission {
  readonly seats: PriorityShares
  readonly #limit: number
  readonly #onShed: OnShed
  readonly #size: () => number
  readonly #all = new OpenList<Admitted>()
  readonly #bytes: PriorityShares
  #sampled = { at: Number.NEGATIVE_INFINITY, isLarge: false }

  constructor(
    mostSeats: () => number,
    limitBytes: number,
    onShed: OnShed,
    size = () => process.memoryUsage.rss(),
  ) {
    this.seats = new PriorityShares(() =>
      this.#isLarge() ? Math.min(alwaysServed, mostSeats()) : mostSeats(),
    )
    this.#limit = limitBytes
    this.#onShed = onShed
    this.#size = size
    this.#bytes = new PriorityShares(() => limitBytes * requestsShare)
  }

  /** Bytes that short requests hold. */
  get held(): number {
    return this.#bytes.allTaken
  }

  /** Answers 429 where there is no seat, or memory is short. */
  readonly admitting =
    (next: Handler<Exchange>): Handler<Exchange> =>
    (exchange) => {
      const level = priorityLevelOf(exchange)
      const short = isShort(exchange)
      if (!short && level !== 'unproven') return next(exchange)
      while (!this.seats.fits(level)) if (!this.#endSender(level)) throw this.#refusal(level)
      const { signal, body, headers } = exchange
      const bytes = short && body ? bodyBytes(headers.get('content-length')) : 0
      if (short && !this.#bytes.fits(level, Math.max(bytes, 1))) {
        this.#onShed('memory', level)
        throw new StatusError(tooLittle)
      }
      const one = new Admitted(exchange, level, bytes, this.#add)
      this.#all.add(one)
      this.seats.take(level, 1)
      this.#bytes.take(level, bytes)
      if (short && body) {
        one.arriving = after(bodyMs, () => this.#end(one, 'slow-body', tooLate, tooLate))
        body.once('end', () => arrived(one))
      }
      // At once where the client has left during authentication.
      onAbort(signal, () => this.#release(one))
      if (!short) return this.#heldUntilBegun(one, next(exchange))
      if (exchange.client) exchange.client.meter = one
      const begun = next({ ...exchange, follower: one })
      const answer = body ? one.unlessEnded(begun) : begun
      return level === 'unproven' ? this.#raisedWhenProven(one, answer) : answer
    }

  #refusal(level: PriorityLevel): StatusError {
    const isLarge = this.#isLarge()
    this.#onShed(isLarge ? 'memory' : 'in-flight', level)
    return new StatusError(isLarge ? tooLittle : tooMany)
  }

  #isLarge(): boolean {
    const at = elapsed()
    if (at - this.#sampled.at >= sampleMs)
      this.#sampled = { at, isLarge: this.#size() > this.#limit }
    return this.#sampled.isLarge
  }

  #release(one: Admitted): void {
    if (!one.isHeld) return
    one.isHeld = false
    this.#all.delete(one)
    arrived(one)
    this.seats.take(one.level, -1)
    this.#bytes.take(one.level, -one.bytes)
    one.bytes = 0
  }

  /** Counts a request at the level of proven callers once its caller has been proven. */
  #rise(one: Admitted): void {
    if (one.level !== 'unproven' || !one.isHeld || !isProven(one.exchange)) return
    this.seats.take(one.level, -1)
    this.#bytes.take(one.level, -one.bytes)
    one.level = priorityLevelOf(one.exchange)
    this.seats.take(one.level, 1)
    this.#bytes.take(one.level, one.bytes)
  }

  /** The head of an answer shows whether the caller's token was accepted; its body may be long. */
  async #raisedWhenProven(one: Admitted, answer: Promise<Reply>): Promise<Reply> {
    const reply = await answer
    this.#rise(one)
    return reply
  }

  async #heldUntilBegun(one: Admitted, answer: Promise<Reply>): Promise<Reply> {
    const reply = await answer
    const begun = reply.kind === 'upgrade' ? reply.finalStatus : undefined
    if (begun) void begun.then(() => this.#release(one))
    else this.#release(one)
    return reply
  }

  #end(one: Admitted, reason: ShedReason, refusal: Status, unknown: Status): void {
    this.#onShed(reason, one.level)
    this.#release(one)
    one.end(refusal, unknown)
  }

  /**
   * Ends the request that has sent its body for longest, of the lowest level up to this one; false
   * where all of those together would not make room.
   */
  #endSender(level: PriorityLevel): boolean {
    const levels = upTo(level)
    const all = [...this.#all].filter((one) => one.arriving && levels.includes(one.level))
    if (!this.seats.fits(level, 1 - all.length)) return false
    const first = levels
      .map((each) => all.find((one) => one.level === each))
      .find((one) => one !== undefined)
    if (first) this.#end(first, 'slow-body', tooSlow, sentInPart)
    return first !== undefined
  }

  /** Adds to the bytes that a request holds; a negative number subtracts. */
  readonly #add = (one: Admitted, bytes: number): void => {
    if (bytes === 0) return
    if (one.isHeld) {
      this.#rise(one)
      // More may leave than arrived: filters add bytes, and the cache answers as well.
      const added = Math.max(bytes, -one.bytes)
      one.bytes += added
      this.#bytes.take(one.level, added)
    }
    if (bytes < 0) return
    for (;;) {
      const level = this.#bytes.overfull
      if (level === undefined || !this.#endLargest(level)) return
    }
  }

  /** Ends one request that shares the limit of this level; false where none of them holds bytes. */
  #endLargest(level: PriorityLevel): boolean {
    const [first] = [...this.#all]
      .filter((one) => one.bytes > 0 && upTo(level).includes(one.level))
      .toSorted(byTerminationOrder)
    if (first) this.#end(first, 'memory', tooLittle, unknownFate)
    return first !== undefined
  }
}

function arrived(one: Admitted): void {
  one.arriving?.[Symbol.dispose]()
  one.arriving = undefined
}

function bodyBytes(contentLength: string | undefined): number {
  if (contentLength === undefined) return unknownBytes
  return Math.min(Number(contentLength) || 0, largestBody)
}

/** The lowest level first. */
const upTo = (level: PriorityLevel): readonly PriorityLevel[] =>
  priorityLevels.slice(0, priorityLevels.indexOf(level) + 1)

/** Repeatable requests are ended first, then those of lower levels, then those that hold most. */
const byTerminationOrder = (one: Admitted, other: Admitted): number =>
  Number(other.repeatable) - Number(one.repeatable) ||
  priorityLevels.indexOf(one.level) - priorityLevels.indexOf(other.level) ||
  other.bytes - one.bytes
