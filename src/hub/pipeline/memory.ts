import { onAbort } from '../../base/abort.ts'
import { elapsed } from '../../base/clock.ts'
import { OpenList } from '../../base/open-list.ts'
import type { Exchange, Handler, WireReply } from '../../http/exchange/exchange.ts'
import { metered } from '../../http/exchange/sink-wrappers.ts'
import { StatusError, timeout, tooManyRequests } from '../../api/kube/status.ts'
import { Termination } from './termination.ts'
import { isShort, type OnShed } from './in-flight.ts'
import {
  priorityLevelOf,
  priorityLevels,
  PriorityShares,
  Share,
  type PriorityLevel,
} from './priority-levels.ts'

/** The size that a request body of unknown length counts as. */
const unknownBytes = 64 * 1024

/**
 * The largest body that an API server accepts (apiserver pkg/server/config.go,
 * MaxRequestBodyBytes).
 */
const largestBody = 3 * 1024 * 1024

/** The share of the process's memory for short requests; the rest is the process itself. */
export const requestsShare = 1 / 2

/**
 * So many short requests are served however large the process is: it shrinks only while it works.
 */
export const alwaysServed = 4

/** The process's size is measured at most so often. */
const sampleMs = 250

interface Holder {
  /** Of its request. */
  readonly id: string
  readonly termination: Termination
  readonly bytes: Share
  readonly seat: Share
  /** What comes for it later is not counted. */
  isHeld: boolean
}

const tooLittle = tooManyRequests('the hub is short of memory, please try again later', 1)

const unknownFate = timeout(
  'the hub is short of memory and waits no longer for the API server: whether the write took effect is unknown',
)

/**
 * Bounds the memory of short requests: request bodies, and bytes that came from an API server and
 * have not been sent to the client. They may hold half of `limitBytes`, each priority level its
 * share of that. New short requests whose level has no room are answered 429; where those in flight
 * still grow beyond it, the one that holds most is ended with 429. A write that an API server has
 * received is ended last, with 504 as its result is unknown: its client must not repeat it. New
 * requests are also answered 429 while the whole process is larger than `limitBytes`. `SlowWatches`
 * bounds watches.
 */
export class MemoryBudget {
  readonly #limit: number
  readonly #onShed: OnShed
  readonly #size: () => number
  readonly #holders = new OpenList<Holder>()
  readonly #bytes: PriorityShares
  readonly #alwaysServed = new PriorityShares(() => alwaysServed)
  #sampled = { at: Number.NEGATIVE_INFINITY, isLarge: false }

  constructor(limitBytes: number, onShed: OnShed, size = () => process.memoryUsage.rss()) {
    this.#limit = limitBytes
    this.#onShed = onShed
    this.#size = size
    this.#bytes = new PriorityShares(() => limitBytes * requestsShare)
  }

  /** Bytes that short requests hold. */
  get held(): number {
    return priorityLevels.reduce((sum, level) => sum + this.#bytes.taken(level), 0)
  }

  /** Answers 429 where memory is short. */
  readonly shedding =
    (next: Handler<Exchange>): Handler<Exchange> =>
    (exchange) => {
      if (!isShort(exchange)) return next(exchange)
      const { id, signal, body, headers } = exchange
      const bytes = body ? bodyBytes(headers.get('content-length')) : 0
      const level = priorityLevelOf(exchange)
      if (!this.#hasRoom(level, bytes)) {
        this.#onShed('memory', level)
        throw new StatusError(tooLittle)
      }
      const holder: Holder = {
        id,
        termination: new Termination(exchange),
        bytes: new Share(this.#bytes, exchange),
        seat: new Share(this.#alwaysServed, exchange),
        isHeld: true,
      }
      this.#holders.add(holder)
      holder.bytes.add(bytes)
      holder.seat.add(1)
      onAbort(signal, () => this.#release(holder))
      // Counts the bytes of an answer as they arrive.
      return holder.termination.serve(next, { onReceived: (bytes) => this.#add(holder, bytes) })
    }

  #hasRoom(level: PriorityLevel, bytes: number): boolean {
    if (!this.#bytes.fits(level, Math.max(bytes, 1))) return false
    return this.#alwaysServed.fits(level) || !this.#isLarge()
  }

  #isLarge(): boolean {
    const at = elapsed()
    if (at - this.#sampled.at >= sampleMs)
      this.#sampled = { at, isLarge: this.#size() > this.#limit }
    return this.#sampled.isLarge
  }

  #release(holder: Holder): void {
    if (!holder.isHeld) return
    holder.isHeld = false
    this.#holders.delete(holder)
    holder.bytes.release()
    holder.seat.release()
  }

  /** Adds to the bytes that a request holds; a negative number subtracts. */
  #add(holder: Holder, bytes: number): void {
    // More may leave than arrived: filters add bytes, and the cache answers as well.
    if (holder.isHeld) holder.bytes.add(bytes)
    if (bytes <= 0) return
    for (;;) {
      const level = this.#bytes.overfull
      if (level === undefined || !this.#endOne(level)) return
    }
  }

  /** Ends one request that shares the limit of this level; false where none of them holds bytes. */
  #endOne(level: PriorityLevel): boolean {
    const upTo = priorityLevels.indexOf(level)
    const [first] = [...this.#holders]
      .filter(({ bytes }) => bytes.amount > 0 && priorityLevels.indexOf(bytes.level) <= upTo)
      .toSorted(byTerminationOrder)
    if (!first) return false
    this.#onShed('memory', first.bytes.level)
    this.#release(first)
    first.termination.end(tooLittle, unknownFate)
    return true
  }

  /** The layer above all that hold bytes: bytes that pass it are no longer held. */
  readonly sending =
    (next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> =>
    (exchange) =>
      next(exchange).then((reply) => {
        if (reply.kind !== 'bytes') return reply
        const holder = this.#holders.findLast(({ id }) => id === exchange.id)
        if (!holder) return reply
        return { ...reply, source: metered(reply.source, (bytes) => this.#add(holder, -bytes)) }
      })
}

function bodyBytes(contentLength: string | undefined): number {
  if (contentLength === undefined) return unknownBytes
  return Math.min(Number(contentLength) || 0, largestBody)
}

/** Repeatable requests are ended first, then those of lower levels, then those that hold most. */
const byTerminationOrder = (one: Holder, other: Holder): number =>
  Number(other.termination.repeatable) - Number(one.termination.repeatable) ||
  priorityLevels.indexOf(one.bytes.level) - priorityLevels.indexOf(other.bytes.level) ||
  other.bytes.amount - one.bytes.amount
