import { sleep, within } from '../../base/clock.ts'
import { answerDeadline } from '../../http/exchange/answer-deadline.ts'
import { wholeText } from '../../http/exchange/chunks.ts'
import type { Claim, Exchange, Handler, User } from '../../http/exchange/exchange.ts'
import { isFromApiServer } from '../../http/exchange/headers.ts'
import { ownRequest } from '../../http/exchange/own-request.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { AuthenticationForward } from './authentication-outcome.ts'
import type { DispatchParts } from './dispatch.ts'

/** How long the first request with a token waits for the review of the token. */
export const reviewTimeoutMs = 5_000
const mostBytes = 64 * 1024

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
      const text = await wholeText(reply.source, mostBytes)
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
