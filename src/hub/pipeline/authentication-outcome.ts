import { elapsed } from '../../base/clock.ts'
import { answerDeadline } from '../../http/exchange/answer-deadline.ts'
import {
  UnusableAnswer,
  type BytesReply,
  type Claim,
  type Exchange,
} from '../../http/exchange/exchange.ts'
import { HeaderList, isFromApiServer } from '../../http/exchange/headers.ts'
import type { ClusterKeys, PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward, ForwardOptions } from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import { isRelayed, parseRequestInfo } from '../../api/request/request-info.ts'
import { wholeText } from '../../http/exchange/chunks.ts'

export interface KeyLearningOptions {
  readonly keys: ClusterKeys
  readonly onLearned: () => void
  /** Called where the keys could not be fetched; the hub retries later. */
  readonly onFailure: (cause: unknown) => void
}

/** How long fetched keys count as complete: clusters change theirs once in years. */
const learnedForMs = 12 * 3_600_000
const retryMs = 60_000

export interface AuthenticationForward {
  readonly forward: Forward
  /** Resolves when a running fetch of the keys is over; at once where none runs. */
  readonly keysFetched: () => Promise<void>
}

/**
 * The same forwarder; it reports each answer to the caller's claim, returns it once a new verdict
 * on the token is on the disk, and fetches the cluster's keys when they are due. It fetches them
 * with a service account's token that an API server has just accepted: service accounts may read
 * the keys, nodes may not (system:service-account-issuer-discovery).
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
  const heeding = async (
    exchange: Exchange,
    claim: Claim,
    options: ForwardOptions,
  ): Promise<BytesReply> => {
    const reply = await forward(exchange, options)
    const { method, info } = exchange
    // A pod or a kubelet may have answered, or an API server that knows no account yet.
    const isOfApiServer = !isRelayed(info) && !reply.isStarting
    if (reply.status !== 401 || isOfApiServer)
      await claim.onUpstreamAnswer({ method, status: reply.status, headers: reply.headers })
    if (claim.keyId !== undefined && isDue(claim.keyId) && claim.holds()) learning = learn(exchange)
    return reply
  }
  return {
    forward: (exchange, options) =>
      exchange.claim ? heeding(exchange, exchange.claim, options) : forward(exchange, options),
    keysFetched: () => learning,
  }
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

/** Keys that are larger, or take longer, are not used. */
const patienceMs = 10_000
const mostBytes = 1024 * 1024

/**
 * The keys that the cluster publishes, read with the credentials of `exchange`. Throws where they
 * are not available, or not an API server's.
 */
async function publishedKeys(forward: Forward, exchange: Exchange): Promise<PublishedKeys> {
  const read = async (path: string): Promise<PublishedKeys> => {
    const text = await textAt(forward, exchange, path)
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
 * `patienceMs` and `mostBytes`.
 */
async function textAt(forward: Forward, exchange: Exchange, path: string): Promise<string> {
  using deadline = answerDeadline(patienceMs)
  const { headers, body: _body, content: _content, ...rest } = exchange
  const request: Exchange = {
    ...rest,
    method: 'GET',
    url: path,
    headers: new HeaderList([
      ...headers.all('authorization').flatMap((value) => ['Authorization', value]),
      'Accept',
      '*/*',
    ]),
    info: parseRequestInfo('GET', path),
    representations: [],
    signal: deadline.signal,
  }
  const reply = await forward(request, { onOutcome: () => undefined })
  const text = await wholeText(reply.source, mostBytes)
  if (reply.status !== 200) throw new UnusableAnswer(`${path} was answered ${reply.status}`)
  // A gateway that authenticates people may publish its own keys at the same path.
  if (!isFromApiServer(reply.headers))
    throw new UnusableAnswer(`${path} was not answered by an API server`)
  return text
}
