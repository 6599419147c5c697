import { elapsed } from '../../base/clock.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { ClusterKeys } from '../identity/cluster-keys.ts'
import type { Forward } from '../upstream/forward.ts'
import { isRelayed } from '../../api/request/request-info.ts'
import { publishedKeys } from './published-keys.ts'

export interface KeyLearningOptions {
  readonly keys: ClusterKeys
  readonly onLearned: () => void
  /** Called with the reason when the keys could not be fetched; they are asked for again later. */
  readonly onFailure: (cause: unknown) => void
}

/** How long fetched keys are believed to be all: clusters change theirs once in years. */
const learnedForMs = 12 * 3_600_000
const retryMs = 60_000

/** A forwarder that heeds what answers say of their callers. */
export interface AuthenticationForward {
  readonly forward: Forward
  /**
   * Resolves when the keys that are being fetched are known, or could not be had; at once where
   * none are.
   */
  readonly keysFetched: () => Promise<void>
}

/**
 * The same forwarder; it tells the caller's claim what was answered, and fetches the cluster's keys
 * when they are due. It fetches them with the token of a service account that an API server has
 * just accepted: service accounts may read the keys, nodes may not
 * (system:service-account-issuer-discovery).
 */
export function withAuthenticationOutcome(
  forward: Forward,
  { keys, onLearned, onFailure }: KeyLearningOptions,
): AuthenticationForward {
  let learning = Promise.resolve()
  let askableAt = 0
  let learnedUntil = 0
  const isDue = (keyId: string): boolean =>
    elapsed() >= askableAt && (elapsed() >= learnedUntil || !keys.has(keyId))
  const learn = async (exchange: Exchange): Promise<void> => {
    askableAt = elapsed() + retryMs
    try {
      await keys.learn(await publishedKeys(forward, exchange))
      learnedUntil = elapsed() + learnedForMs
      onLearned()
    } catch (error) {
      onFailure(error)
    }
  }
  const heeding: Forward = async (exchange, options) => {
    const reply = await forward(exchange, options)
    const { claim, method, info } = exchange
    if (reply.status !== 401 || !isRelayed(info))
      claim?.onUpstreamAnswer({ method, status: reply.status, headers: reply.headers })
    if (claim?.keyId !== undefined && isDue(claim.keyId) && claim.holds())
      learning = learn(exchange)
    return reply
  }
  return { forward: heeding, keysFetched: () => learning }
}
