import { elapsed } from '../../base/clock.ts'

/** Which objects of a resource a request is about. */
export interface Scope {
  /** '': all namespaces, or none. */
  readonly namespace: string
  /** '': all names. */
  readonly name: string
  /** Both selectors in one text; '': none. Authorizers may look at them; RBAC does not. */
  readonly selectors: string
}

export const everything: Scope = { namespace: '', name: '', selectors: '' }

/** The last decision of an API server about a scope, in milliseconds since the epoch. */
export interface ScopedDecision extends Scope {
  readonly allowed: boolean
  readonly at: number
  /** When a denial was noted last, on the monotonic clock; absent: in an earlier process. */
  readonly notedAt?: number
}

/** `closed`: more requests were denied than are remembered, and this may be one of them. */
export type Refusal = { readonly kind: 'denied'; readonly at: number } | { readonly kind: 'closed' }

/** A denial that only repeats an earlier one is not written again within this time. */
const repeatedMs = 10 * 60_000

/**
 * The first allowance after so long without a denial beyond the bound makes the set count single
 * decisions again.
 */
export const closedMs = 60 * 60_000

/**
 * The requests with one verb and resource that API servers have denied one user, and have not
 * allowed since. The newest decision about a request counts. A denial also refuses every wider
 * request, which would include the denied one, and the same request under a selector, which RBAC
 * does not look at. An allowance is kept only where it makes an exception.
 */
export class ScopedDecisions {
  #decisions: readonly ScopedDecision[] = []
  /** The time of the last denial that is not remembered; 0: there is none. */
  #closedAt = 0
  /** The same on the monotonic clock, in this process. */
  #closedNotedAt = -Infinity

  /** From the results of `stored` and `closedAt`. */
  static from(closedAt: number, decisions: readonly ScopedDecision[]): ScopedDecisions {
    const read = new ScopedDecisions()
    read.#decisions = decisions
    read.#closedAt = closedAt
    return read
  }

  get stored(): readonly ScopedDecision[] {
    return this.#decisions
  }

  get closedAt(): number {
    return this.#closedAt
  }

  get isEmpty(): boolean {
    return this.#decisions.length === 0 && this.#closedAt === 0
  }

  /**
   * Notes a denial, where there is `room` for one more. Returns whether it has to be written. Where
   * there is no room, the set refuses everything that is not allowed from now on, and notes no more
   * denials.
   */
  deny(scope: Scope, at: number, room: boolean): boolean {
    const before = this.#decisions.find((each) => !each.allowed && isSame(each, scope))
    const isException = (each: ScopedDecision): boolean => each.allowed && includes(each, scope)
    const notedAt = elapsed()
    if (before && isRepeated(before.at, at) && !this.#decisions.some(isException)) {
      this.#decisions = this.#decisions.map((each) =>
        each === before ? { ...each, notedAt } : each,
      )
      return false
    }
    const { length } = this.#decisions
    const remaining = this.#decisions.filter((each) => each !== before && !isException(each))
    if (before || (room && this.#closedAt === 0)) {
      this.#decisions = [...remaining, { ...scopeOf(scope), allowed: false, at, notedAt }]
      return true
    }
    this.#decisions = remaining
    this.#closedNotedAt = notedAt
    if (this.#closedAt !== 0 && isRepeated(this.#closedAt, at)) return remaining.length < length
    this.#closedAt = at
    return true
  }

  /** Refuses everything, in place of the remembered decisions. */
  close(at: number): void {
    this.#decisions = []
    this.#closedAt = at
    this.#closedNotedAt = elapsed()
  }

  /**
   * Notes an allowance, as an exception where there is `room`. Returns whether anything has
   * changed.
   */
  allow(scope: Scope, at: number, room: boolean, sentAt: number): boolean {
    if (this.isEmpty) return false
    const { length } = this.#decisions
    const isOfSelector = (denied: Scope): boolean =>
      scope.selectors !== '' && scope.selectors !== denied.selectors
    this.#decisions = this.#decisions.filter(
      (each) =>
        each.allowed || !includes(scope, each) || isOfSelector(each) || !isBefore(each, sentAt),
    )
    const wasClosedAt = this.#closedAt
    const isOpenable = isSame(scope, everything) || this.#closedForMs(at) >= closedMs
    if (this.#closedNotedAt < sentAt && isOpenable) this.#closedAt = 0
    // Without a denial there is nothing to except.
    if (this.#closedAt === 0 && this.#decisions.every((each) => each.allowed)) this.#decisions = []
    const isLifted = this.#decisions.length < length || wasClosedAt !== this.#closedAt
    if (!this.refusal(scope) || !room || this.#isDeniedSince(scope, sentAt)) return isLifted
    this.#decisions = [...this.#decisions, { ...scopeOf(scope), allowed: true, at }]
    return true
  }

  /** How long nothing was denied beyond the bound: by the monotonic clock, if it is known. */
  #closedForMs(at: number): number {
    if (this.#closedNotedAt !== -Infinity) return elapsed() - this.#closedNotedAt
    // The clock was ahead.
    if (this.#closedAt > at) this.#closedAt = at
    return at - this.#closedAt
  }

  /** Whether a denial that was noted after `sentAt` refuses the scope, or a part of it. */
  #isDeniedSince(scope: Scope, sentAt: number): boolean {
    if (this.#closedAt !== 0 && this.#closedNotedAt >= sentAt) return true
    return this.#decisions.some(
      (each) => !each.allowed && includes(scope, each) && !isBefore(each, sentAt),
    )
  }

  /** `undefined`: no denial applies to a request of this scope. */
  refusal(scope: Scope): Refusal | undefined {
    if (this.#decisions.some((each) => each.allowed && isSame(each, scope))) return undefined
    const denied = this.#decisions.find((each) => !each.allowed && includes(scope, each))
    if (denied) return { kind: 'denied', at: denied.at }
    return this.#closedAt === 0 ? undefined : { kind: 'closed' }
  }
}

/** Whether a denial was noted before a request was sent. */
const isBefore = ({ notedAt = -Infinity }: ScopedDecision, sentAt: number): boolean =>
  notedAt < sentAt

/** Not where the clock was set back. */
const isRepeated = (before: number, at: number): boolean => at >= before && at - before < repeatedMs

/** Whether a request of `scope` includes that of `part`, whatever the selectors. */
const includes = (scope: Scope, part: Scope): boolean =>
  (scope.namespace === '' || scope.namespace === part.namespace) &&
  (scope.name === '' || scope.name === part.name)

const isSame = (a: Scope, b: Scope): boolean =>
  a.namespace === b.namespace && a.name === b.name && a.selectors === b.selectors

const scopeOf = ({ namespace, name, selectors }: Scope): Scope => ({ namespace, name, selectors })
