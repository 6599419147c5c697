import { elapsed, sleep, within, after } from '../../base/clock.ts'
import {
  UnusableAnswer,
  type Claim,
  type Exchange,
  type Handler,
  type UpstreamReply,
  type User,
} from '../../http/exchange/exchange.ts'
import { HeaderList, isFromApiServer } from '../../http/exchange/headers.ts'
import type { ClusterKeys, PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward, ForwardOptions } from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import { isRelayed, parseRequestInfo } from '../../api/request/request-info.ts'
import { bodyOf, wholeText } from '../../http/exchange/chunks.ts'
import { ownRequest } from '../../http/exchange/own-request.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { DispatchParts } from './dispatch.ts'

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
  ): Promise<UpstreamReply> => {
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
  const {
    body: _body,
    content: _content,
    traffic: _traffic,
    follower: _follower,
    ...rest
  } = exchange
  const { headers } = exchange
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
  const text = await wholeText(bodyOf(reply), mostBytes)
  if (reply.status !== 200) throw new UnusableAnswer(`${path} was answered ${reply.status}`)
  // A gateway that authenticates people may publish its own keys at the same path.
  if (!isFromApiServer(reply.headers))
    throw new UnusableAnswer(`${path} was not answered by an API server`)
  return text
}

/** How long the first request with a token waits for the review of the token. */
export const reviewTimeoutMs = 5_000
const mostReviewBytes = 64 * 1024

/**
 * The most concurrent reviews. A review may outlast its client, as other requests may wait for it,
 * and so holds no seat of the in-flight limit: without this bound a caller with invented tokens
 * could have hundreds of them open at an API server.
 */
export const mostReviews = 50

/** The API is stable since 1.28, and was beta before. */
const versions = ['v1', 'v1beta1'] as const

/**
 * Determines the holder of a token that names a service account, where the cluster's keys do not
 * show it: each token of the account reads the records of the account, and no other token does. The
 * first request with the token waits for that, so that all of them are recorded under the same key.
 * Offline there is no review, and requests with known keys, or of the node, need none.
 */
export function withConfirmedAccount(
  authentication: AuthenticationForward,
  {
    cloud,
    onOutcome,
  }: { readonly cloud: Pick<Cloud, 'online' | 'onlineKnown'> } & Pick<DispatchParts, 'onOutcome'>,
) {
  let reviews = 0
  return (next: Handler<Exchange>): Handler<Exchange> =>
    (exchange) => {
      const { claim, upgrade } = exchange
      if (!claim?.confirm || upgrade || cloud.online === false) return next(exchange)
      return confirmed(exchange, claim.confirm).then(next)
    }

  async function confirmed(
    exchange: Exchange,
    confirm: NonNullable<Claim['confirm']>,
  ): Promise<Exchange> {
    await within(reviewTimeoutMs, cloud.onlineKnown())
    if (cloud.online !== true) return exchange
    return { ...exchange, identity: await confirm(() => holder(exchange)) }
  }

  async function holder(exchange: Exchange): Promise<User | undefined> {
    if (reviews >= mostReviews) return undefined
    reviews++
    try {
      return await holderOf(exchange, authentication, onOutcome)
    } finally {
      reviews--
    }
  }
}

/**
 * The user that an API server sees in the token (SelfSubjectReview, which every authenticated user
 * may create). `undefined` where none answers in time. An API server without that API proves with
 * its 404 that it accepts the token, and the hub fetches the keys with it: the request waits for
 * these, which show the holder as well.
 */
async function holderOf(
  exchange: Exchange,
  { forward, keysFetched }: AuthenticationForward,
  onOutcome: DispatchParts['onOutcome'],
): Promise<User | undefined> {
  using deadline = answerDeadline(reviewTimeoutMs)
  const { signal } = deadline
  try {
    for (const version of versions) {
      const request = review(exchange, version, signal)
      const reply = await forward(request, { onOutcome })
      const text = await wholeText(bodyOf(reply), mostReviewBytes)
      if (reply.status === 201 && isFromApiServer(reply.headers)) return userIn(text)
      if (reply.status !== 404) break
    }
    await Promise.race([keysFetched(), sleep(reviewTimeoutMs, signal)])
  } catch {
    // After any failure the holder is unknown.
  }
  return undefined
}

function review(
  { identity, credential, claim, headers }: Exchange,
  version: (typeof versions)[number],
  signal: AbortSignal,
): Exchange {
  const apiVersion = `authentication.k8s.io/${version}`
  const authorization = headers.get('authorization')
  const type = mediaType('json')
  return ownRequest({
    identity,
    credential,
    ...(claim && { claim }),
    ...(authorization !== undefined && { authorization }),
    method: 'POST',
    url: `/apis/${apiVersion}/selfsubjectreviews`,
    accept: type,
    content: {
      type,
      bytes: Buffer.from(JSON.stringify({ kind: 'SelfSubjectReview', apiVersion })),
    },
    signal,
  })
}

function userIn(body: string): User {
  const { status } = JSON.parse(body) as {
    status?: { userInfo?: { username?: unknown; uid?: unknown } }
  }
  const { username, uid } = status?.userInfo ?? {}
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  return { username: text(username), uid: text(uid) }
}

/**
 * Bounds a request of the hub's own: `signal` aborts after `ms`, and when this is disposed of, so
 * that the unread rest of the answer is given up. The reason is an `UnusableAnswer`.
 */
function answerDeadline(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const timer = after(ms, () => controller.abort(new UnusableAnswer('no answer in time')))
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]()
      controller.abort(new UnusableAnswer('the rest of the answer is not needed'))
    },
  }
}
