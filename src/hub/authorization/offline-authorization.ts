import { canonicalSpec, type Review } from '../../api/codec/review.ts'
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
import type { Authorizer } from './attributes.ts'
import type { RecordedDecisions } from './recorded-decisions.ts'
import { attributesOf, refusalOf, userOf } from './requests.ts'
import { questionOf, type AccessQuestion } from './review.ts'
import { isSourceWithdrawn } from './withdrawn-source.ts'

/**
 * `off`: reviews are answered by API servers only. `decisions`: the last answer is repeated, and
 * the last decision of an API server about a caller's request counts for the cache. `rbac`: the
 * cluster's policies decide, also about answers from the cache.
 */
export type OfflineAuthorizationMode = 'off' | 'decisions' | 'rbac'

/** An authorizer, and when an API server last confirmed its policies. */
export interface PolicyAuthorizer {
  readonly authorize: Authorizer
  readonly confirmedAt: number
}

/** The result of a decision, for metrics. */
export type DecisionResult = 'allowed' | 'denied' | 'unknown'

interface OfflineAuthorizationParts {
  readonly mode: OfflineAuthorizationMode
  readonly nodeName: string
  readonly recorded: RecordedReviews
  /** The last decisions of API servers about requests; `undefined` with `off`. */
  readonly decisions: RecordedDecisions | undefined
  readonly store: ObjectStore
  /** `undefined`: the policies, or some of them, are not known. */
  readonly policies: () => PolicyAuthorizer | undefined
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
   * Answers a review by the cluster's policies where these decide, or with a later denial of an API
   * server, else with the last answer to the same caller; `undefined`: the answer is not known.
   */
  review(exchange: Exchange, info: ResourceRequest, review: Review): ReviewAnswer | undefined {
    const { mode, onDecision } = this.#parts
    const answer =
      mode === 'off'
        ? undefined
        : (this.#byPolicies(exchange, info, review) ?? this.#byRecords(exchange, info, review))
    onDecision('review', resultOf(answer))
    return answer
  }

  #byRecords(exchange: Exchange, info: ResourceRequest, review: Review): ReviewAnswer | undefined {
    const { decisions, recorded } = this.#parts
    const refusal = decisions?.refusalInReview(exchange, review)
    if (refusal?.kind === 'denied') {
      const reason = deniedSince(refusal.at)
      return { status: { allowed: false, reason }, confirmedAt: refusal.at }
    }
    const last = recorded.last(exchange, info, review)
    return refusal && last?.status['allowed'] !== false ? undefined : last
  }

  /**
   * To be called before the cache answers. Throws 403 where the request is denied, and 503 where it
   * is not known whether it is: by the cluster's policies, or else by the last decisions of API
   * servers. Of these, the caller's record counts as the decision that allows it. The node itself
   * may read its own records.
   */
  check(exchange: Exchange): void {
    const { mode, decisions, onDecision } = this.#parts
    if (mode === 'off' || exchange.credential === 'node') return
    if (!isProven(exchange)) throw new StatusError(unauthorized(), { reason: unprovenReason })
    const refusal =
      mode === 'rbac'
        ? this.#refusalByPolicies(exchange)
        : decisions && this.#refusalByDecisions(exchange, decisions)
    if (!refusal) {
      onDecision('request', 'allowed')
      return
    }
    onDecision('request', refusal.code === 403 ? 'denied' : 'unknown')
    throw new StatusError(refusal)
  }

  #refusalByPolicies(exchange: Exchange): Status | undefined {
    const { nodeName, policies } = this.#parts
    const user = userOf(exchange.identity, nodeName)
    const attributes = attributesOf(exchange)
    const decision = user && policies()?.authorize(user, attributes)
    if (!user || !decision || decision.kind === 'unknown') return notKnown()
    if (decision.kind === 'allowed') return undefined
    return refusalOf(user, attributes, decision.reason)
  }

  #refusalByDecisions(exchange: Exchange, decisions: RecordedDecisions): Status | undefined {
    const { nodeName, store } = this.#parts
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

  #byPolicies(
    { identity }: Exchange,
    info: ResourceRequest,
    review: Review,
  ): ReviewAnswer | undefined {
    const { mode, nodeName, policies } = this.#parts
    const { kind, spec } = review
    if (mode !== 'rbac' || kind === 'TokenReview') return undefined
    // The answer may depend on a member that the hub does not know.
    const question = canonicalSpec(review) === undefined ? undefined : questionOf(kind, spec)
    if (!question || !isInNamespace(question, info)) return undefined
    const user = question.user ?? userOf(identity, nodeName)
    const known = policies()
    if (!user || !known) return undefined
    const decision = known.authorize(user, question.attributes)
    if (decision.kind === 'unknown') return undefined
    const { reason } = decision
    return {
      status: { allowed: decision.kind === 'allowed', ...(reason !== '' && { reason }) },
      confirmedAt: known.confirmedAt,
    }
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

/** A LocalSubjectAccessReview is about the namespace that it is posted to. */
const isInNamespace = ({ attributes }: AccessQuestion, { namespace }: ResourceRequest): boolean =>
  namespace === undefined || (attributes.isResource && attributes.namespace === namespace)

function resultOf(answer: ReviewAnswer | undefined): DecisionResult {
  if (!answer) return 'unknown'
  const { allowed, authenticated } = answer.status
  return allowed === true || authenticated === true ? 'allowed' : 'denied'
}
