import { elapsed, within, after } from '../../base/clock.ts'
import {
  UnusableAnswer,
  type Claim,
  type Exchange,
  type Handler,
  type UpstreamReply,
} from '../../http/exchange/exchange.ts'
import { HeaderList, isFromApiServer } from '../../http/exchange/headers.ts'
import type { ClusterKeys, PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward, ForwardOptions } from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import { isRelayed } from '../../api/request/request-info.ts'
import { bodyOf, wholeText } from '../../http/exchange/chunks.ts'
import { ownRequest } from '../../http/exchange/own-request.ts'
import type { Cloud } from '../upstream/cloud.ts'

/**
 * The same forwarder; it reports each answer to the caller's claim, and returns it once a new
 * verdict on the token is on the disk, and `onForbidden` has resolved for a 403.
 */
export function withAuthenticationOutcome(
  forward: Forward,
  onForbidden: (exchange: Exchange, reply: UpstreamReply) => Promise<void>,
): Forward {
  const heeding = async (
    exchange: Exchange,
    claim: Claim,
    options: ForwardOptions,
  ): Promise<UpstreamReply> => {
    const reply = await forward(exchange, options)
    const { method, info } = exchange
    // A pod or a kubelet may have answered, or an API server that knows no account yet.
    const isOfApiServer = !isRelayed(info) && !reply.isStarting
    if (reply.status !== 401 || isOfApiServer)
      await claim.onUpstreamAnswer({ method, status: reply.status, headers: reply.headers })
    if (reply.status === 403) await onForbidden(exchange, reply)
    return reply
  }
  return (exchange, options) =>
    exchange.claim ? heeding(exchange, exchange.claim, options) : forward(exchange, options)
}

/** The same upgrader; it reports each upgrade that an API server has made to the caller's claim. */
export const reportingUpgrades =
  (upgrade: Upgrade): Upgrade =>
  async (exchange) => {
    const reply = await upgrade(exchange)
    const { claim, method } = exchange
    void reply.finalStatus?.then((status) => {
      if (status === 101)
        void claim?.onUpstreamAnswer({ method, status, headers: new HeaderList() })
    })
    return reply
  }

export interface KeyLearningParts {
  readonly keys: ClusterKeys
  readonly forward: Forward
  readonly cloud: Pick<Cloud, 'online' | 'onlineKnown'>
  readonly onLearned: () => void
  /** Called where the keys could not be fetched; the hub retries later. */
  readonly onFailure: (cause: unknown) => void
}

/** How long fetched keys count as complete: clusters change theirs once in years. */
const learnedForMs = 12 * 3_600_000
/** How long after a fetch whose token was accepted the hub waits before the next one. */
export const keysRetryMs = 60_000

/** How long the first request with a token waits for the cluster's keys. */
export const keysPatienceMs = 5_000

/**
 * The most concurrent fetches. One may outlast its client, and so holds no seat of the in-flight
 * limit: without this bound a caller with invented tokens could have hundreds of them open at an
 * API server.
 */
export const mostFetches = 50

/**
 * Fetches the cluster's keys, which show whose a token is: each token of a service account reads
 * the records of the account, and no other token does. The first request with a token whose key is
 * not known waits for them, so that all of its requests are recorded under the same key. They are
 * fetched with that token: service accounts may read them, nodes may not
 * (system:service-account-issuer-discovery).
 */
export function withKnownAccount({ keys, forward, cloud, onLearned, onFailure }: KeyLearningParts) {
  let askableAt = 0
  let learnedUntil = 0
  let fetches = 0
  let running: Promise<void> | undefined
  return (next: Handler<Exchange>): Handler<Exchange> =>
    (exchange) => {
      const { claim, upgrade } = exchange
      if (claim?.keyId === undefined || upgrade || cloud.online === false) return next(exchange)
      if (elapsed() < askableAt) return next(exchange)
      if (!keys.has(claim.keyId)) return identified(exchange, claim, claim.keyId).then(next)
      if (elapsed() >= learnedUntil && claim.holds()) {
        learnedUntil = elapsed() + keysRetryMs
        void learn(exchange)
      }
      return next(exchange)
    }

  async function identified(exchange: Exchange, claim: Claim, keyId: string): Promise<Exchange> {
    await within(keysPatienceMs, cloud.onlineKnown())
    if (cloud.online !== true) return exchange
    await fetched(exchange, keyId)
    return { ...exchange, identity: await claim.verifiedIdentity() }
  }

  async function fetched(exchange: Exchange, keyId: string): Promise<void> {
    // With another token, which API servers may refuse.
    await running
    if (keys.has(keyId) || elapsed() < askableAt || fetches >= mostFetches) return
    fetches++
    running = learn(exchange).finally(() => fetches--)
    await running
  }

  async function learn(exchange: Exchange): Promise<void> {
    try {
      const published = await publishedKeys(forward, exchange)
      askableAt = elapsed() + keysRetryMs
      // They are used at once: no request waits for the disk.
      keys.learn(published).then(() => {
        learnedUntil = elapsed() + learnedForMs
        onLearned()
      }, onFailure)
    } catch (error) {
      if (!(error instanceof TokenRefused)) askableAt = elapsed() + keysRetryMs
      onFailure(error)
    }
  }
}

/** The token of a request is no one's: with another one the keys may be had. */
class TokenRefused extends UnusableAnswer {}

/** Larger keys are not used. */
const mostBytes = 1024 * 1024

/**
 * The keys that the cluster publishes, read with the credentials of `exchange`. Throws where they
 * do not come in time, or not of an API server.
 */
async function publishedKeys(forward: Forward, exchange: Exchange): Promise<PublishedKeys> {
  const deadline = new AbortController()
  using _timer = after(keysPatienceMs, () =>
    deadline.abort(new UnusableAnswer('no answer in time')),
  )
  const read = async (path: string): Promise<PublishedKeys> => {
    const text = await textAt(forward, exchange, path, deadline.signal)
    try {
      return { ...(JSON.parse(text) as PublishedKeys) }
    } catch {
      throw new UnusableAnswer(`${path} was not answered in JSON`)
    }
  }
  const { issuer } = await read('/.well-known/openid-configuration')
  const { keys } = await read('/openid/v1/jwks')
  const isObject = (key: unknown): boolean => typeof key === 'object' && key !== null
  return { issuer, keys: Array.isArray(keys) ? keys.filter(isObject) : [] }
}

/**
 * An API server's answer to the caller of `exchange` at `path`. Throws unless it is a 200, within
 * `mostBytes`.
 */
async function textAt(
  forward: Forward,
  { headers, identity, credential, claim }: Exchange,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  const authorization = headers.get('authorization')
  const caller = { identity, credential, ...(authorization && { authorization }) }
  const read = { method: 'GET', url: path, accept: '*/*', signal } as const
  const request = ownRequest({ ...read, ...caller, ...(claim && { claim }) })
  const reply = await forward(request, { onOutcome: () => undefined })
  const text = await wholeText(bodyOf(reply), mostBytes)
  if (reply.status === 401) throw new TokenRefused(`${path} was answered 401`)
  if (reply.status !== 200) throw new UnusableAnswer(`${path} was answered ${reply.status}`)
  // A gateway that authenticates people may publish its own keys at the same path.
  if (!isFromApiServer(reply.headers))
    throw new UnusableAnswer(`${path} was not answered by an API server`)
  return text
}
