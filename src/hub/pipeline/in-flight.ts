import { onAbort } from '../../base/abort.ts'
import { after } from '../../base/clock.ts'
import type { Exchange, Handler, Reply } from '../../http/exchange/exchange.ts'
import { StatusError, timeout, tooManyRequests, type Status } from '../../api/kube/status.ts'
import { isLongRunning } from '../../api/request/request-info.ts'
import { Termination } from './termination.ts'
import {
  priorityLevelOf,
  priorityLevels,
  PriorityShares,
  Share,
  type PriorityLevel,
} from './priority-levels.ts'

/** Why a request was shed. */
export type ShedReason = 'in-flight' | 'slow-body' | 'memory'

export type OnShed = (reason: ShedReason, level: PriorityLevel) => void

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

/**
 * Answers 429 to short requests for which their priority level has no seat; it queues none. A
 * request whose body is still arriving takes no seat, so that slow senders block no other request;
 * of those as many more are served at a time, by the same shares, and the oldest of the lowest
 * level is shed for a new one.
 *
 * A long-running request takes a seat only while its caller is unproven and it has not begun:
 * otherwise a caller could open any number of watches with a token that an API server is slow to
 * refuse.
 */
export function withInFlightLimit(seats: PriorityShares, onShed: OnShed) {
  return (next: Handler<Exchange>): Handler<Exchange> => {
    const sending = new SlowSenders(new PriorityShares(() => seats.limit('node')), onShed)
    return (exchange) => {
      const level = priorityLevelOf(exchange)
      const short = isShort(exchange)
      if (!short && level !== 'unproven') return next(exchange)
      if (!seats.fits(level)) {
        onShed('in-flight', level)
        throw new StatusError(
          tooManyRequests('too many requests at once, please try again later', 1),
        )
      }
      const take = (): Share => {
        const seat = new Share(seats, exchange)
        seat.add(1)
        onAbort(exchange.signal, () => seat.release())
        return seat
      }
      if (!short) return heldUntilBegun(take(), next(exchange))
      if (exchange.body) return sending.serve(exchange, next, take)
      const seat = take()
      return level === 'unproven' ? raisedWhenProven(seat, next(exchange)) : next(exchange)
    }
  }
}

async function heldUntilBegun(seat: Share, answer: Promise<Reply>): Promise<Reply> {
  const reply = await answer
  const begun = reply.kind === 'upgrade' ? reply.finalStatus : undefined
  if (begun) void begun.then(() => seat.release())
  else seat.release()
  return reply
}

/** The head of an answer shows whether the caller's token was accepted; its body may be long. */
async function raisedWhenProven(seat: Share, answer: Promise<Reply>): Promise<Reply> {
  const reply = await answer
  seat.rise()
  return reply
}

interface Sender {
  readonly termination: Termination
  readonly share: Share
}

/** Short requests whose bodies are still arriving, the oldest first. */
class SlowSenders {
  readonly #shares: PriorityShares
  readonly #onShed: OnShed
  readonly #all = new Set<Sender>()

  constructor(shares: PriorityShares, onShed: OnShed) {
    this.#shares = shares
    this.#onShed = onShed
  }

  /** Calls `arrived` after the end of the body, unless the request is over by then. */
  serve(exchange: Exchange, next: Handler<Exchange>, arrived: () => void): Promise<Reply> {
    const one: Sender = {
      termination: new Termination(exchange),
      share: new Share(this.#shares, exchange),
    }
    const patience = after(bodyMs, () => {
      const late = timeout('the body of the request did not arrive in time')
      this.#shed(one, late, late)
    })
    const over = (): boolean => {
      patience[Symbol.dispose]()
      return this.#remove(one)
    }
    exchange.body?.once('end', () => over() && arrived())
    this.#all.add(one)
    one.share.add(1)
    onAbort(exchange.signal, over)
    this.#makeRoom()
    return one.termination.serve(next)
  }

  #makeRoom(): void {
    const over = this.#shares.overfull
    if (over === undefined) return
    const levels = priorityLevels.slice(0, priorityLevels.indexOf(over) + 1)
    const all = [...this.#all]
    const first = levels
      .map((level) => all.find(({ share }) => share.level === level))
      .find((one) => one !== undefined)
    if (!first) return
    this.#shed(
      first,
      tooManyRequests('too many requests at once, please send faster', 1),
      // Part of it was sent upstream: with Retry-After the client would repeat that part.
      timeout('too many requests at once, and the body of this one had not arrived whole'),
    )
  }

  #remove(one: Sender): boolean {
    one.share.release()
    return this.#all.delete(one)
  }

  #shed(one: Sender, refusal: Status, unknown: Status): void {
    const { level } = one.share
    if (!this.#remove(one)) return
    this.#onShed('slow-body', level)
    one.termination.end(refusal, unknown)
  }
}
