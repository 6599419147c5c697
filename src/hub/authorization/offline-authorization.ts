import type { Review } from '../../api/codec/review.ts'
import { now } from '../../base/clock.ts'
import {
  serviceUnavailable,
  StatusError,
  unauthorized,
  type Status,
} from '../../api/kube/status.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { isProven } from '../../http/exchange/proven.ts'
import { unprovenReason } from '../answers/offline.ts'
import type { RecordedReviews, ReviewAnswer } from '../answers/recorded-reviews.ts'
import type { ObjectStore } from '../store/store.ts'
import type { RecordedDecisions } from './recorded-decisions.ts'
import { attributesOf, refusalOf, userOf } from './requests.ts'
import { isSourceWithdrawn } from './withdrawn-source.ts'

/** The result of a decision, for metrics. */
export type DecisionResult = 'allowed' | 'denied' | 'unknown'

interface OfflineAuthorizationParts {
  readonly nodeName: string
  readonly recorded: RecordedReviews
  /** The last decisions of API servers about requests. */
  readonly decisions: RecordedDecisions
  readonly store: ObjectStore
  /** Called after each decision about a review, or about a request that the cache could answer. */
  readonly onDecision: (kind: 'review' | 'request', result: DecisionResult) => void
}

/**
 * Decides about callers' rights while no API server can. It never allows a request whose decision
 * it does not know.
 */
export class OfflineAuthorization {
  readonly #parts: OfflineAuthorizationParts

  constructor(parts: OfflineAuthorizationParts) {
    this.#parts = parts
  }

  /**
   * Answers a review with a later denial of an API server, else with the last answer to the same
   * caller; `undefined`: the answer is not known.
   */
  review(exchange: Exchange, info: ResourceRequest, review: Review): ReviewAnswer | undefined {
    const answer = this.#answer(exchange, info, review)
    this.#parts.onDecision('review', resultOf(answer))
    return answer
  }

  #answer(exchange: Exchange, info: ResourceRequest, review: Review): ReviewAnswer | undefined {
    const { decisions, recorded } = this.#parts
    const refusal = decisions.refusalInReview(exchange, review)
    if (refusal?.kind === 'denied') {
      const reason = deniedSince(refusal.at)
      return { status: { allowed: false, reason }, confirmedAt: refusal.at }
    }
    const last = recorded.last(exchange, info, review)
    return refusal && last?.status['allowed'] !== false ? undefined : last
  }

  /**
   * To be called before the cache answers. Throws 403 where an API server has denied the request
   * since the caller's record was made, which counts as the decision that allows it, and 503 where
   * it is not known whether it is denied. The node itself may read its own records.
   */
  check(exchange: Exchange): void {
    if (exchange.credential === 'node') return
    if (!isProven(exchange)) throw new StatusError(unauthorized(), { reason: unprovenReason })
    const refusal = this.#refusal(exchange)
    const result = !refusal ? 'allowed' : refusal.code === 403 ? 'denied' : 'unknown'
    this.#parts.onDecision('request', result)
    if (refusal) throw new StatusError(refusal)
  }

  #refusal(exchange: Exchange): Status | undefined {
    const { nodeName, store, decisions } = this.#parts
    const { identity, info } = exchange
    const refusal = decisions.refusal(exchange)
    if (refusal?.kind === 'denied') {
      const user = userOf(identity, nodeName)
      return refusalOf(user, attributesOf(exchange), deniedSince(refusal.at))
    }
    if (refusal) return notKnown()
    if (!info.isResource) return undefined
    const isRefused = decisions.refusedLists(exchange)
    const isWithdrawn = isRefused && isSourceWithdrawn(exchange, info, store, isRefused)
    return isWithdrawn ? notKnown() : undefined
  }
}

const notKnown = (): Status =>
  serviceUnavailable('the cloud cannot be reached, and it is not known whether this is allowed')

/** The reason of a refusal. */
function deniedSince(at: number): string {
  const seconds = Math.max(Math.floor((now() - at) / 1000), 0)
  const time = new Date(at).toISOString()
  return `an API server denied it at ${time}, ${seconds} seconds ago, and none can be reached now`
}

function resultOf(answer: ReviewAnswer | undefined): DecisionResult {
  if (!answer) return 'unknown'
  const { allowed, authenticated } = answer.status
  return allowed === true || authenticated === true ? 'allowed' : 'denied'
}
