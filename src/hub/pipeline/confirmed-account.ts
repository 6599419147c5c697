import { after, sleep } from '../../base/clock.ts'
import { wholeText } from '../../http/exchange/chunks.ts'
import type { Claim, Exchange, Handler, User } from '../../http/exchange/exchange.ts'
import { isFromApiServer } from '../../http/exchange/headers.ts'
import { ownRequest } from '../../http/exchange/own-request.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { AuthenticationForward } from './authentication-outcome.ts'
import type { DispatchParts } from './dispatch.ts'

/** How long the first request with a token may wait until it is known whose it is. */
export const reviewTimeoutMs = 5_000
const mostBytes = 64 * 1024

/**
 * How many tokens are asked about at a time. A review outlasts the client that it is made for, as
 * others may wait for it, and so is bounded by no seat of the in-flight limit: without this,
 * anybody could have hundreds open at an API server with made-up tokens.
 */
export const mostReviews = 50

/** The API is stable since 1.28, and was beta before. */
const versions = ['v1', 'v1beta1'] as const

/**
 * Finds out whose a token is that names a service account, where the cluster's keys do not tell:
 * what is recorded for the account is read with each of its tokens, and with no other. It is found
 * out before the first request with the token goes on, so that all of them are recorded under the
 * same key. Offline there is nobody to ask, and requests with the keys at hand, or of the node, do
 * not come here.
 */
export function withConfirmedAccount(
  heeding: AuthenticationForward,
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
    const patience = new AbortController()
    await Promise.race([cloud.onlineKnown(), sleep(reviewTimeoutMs, patience.signal)])
    patience.abort()
    if (cloud.online !== true) return exchange
    return { ...exchange, identity: await confirm(() => holder(exchange)) }
  }

  async function holder(exchange: Exchange): Promise<User | undefined> {
    if (reviews >= mostReviews) return undefined
    reviews++
    try {
      return await holderOf(exchange, heeding, onOutcome)
    } finally {
      reviews--
    }
  }
}

/**
 * Whom an API server takes the caller for, as it says to that very token (SelfSubjectReview, which
 * everybody who is authenticated may create). `undefined` where none says it in time. An API server
 * without that API has accepted the token by saying so, and the keys are fetched with it: they are
 * waited for then, for they tell the same.
 */
async function holderOf(
  exchange: Exchange,
  { forward, keysFetched }: AuthenticationForward,
  onOutcome: DispatchParts['onOutcome'],
): Promise<User | undefined> {
  const giveUp = new AbortController()
  using _patience = after(reviewTimeoutMs, () => giveUp.abort(new Error('no answer in time')))
  using _rest = { [Symbol.dispose]: () => giveUp.abort(new Error('read')) }
  const { signal } = giveUp
  try {
    for (const version of versions) {
      const asked = review(exchange, version, signal)
      const reply = await forward(asked, { onOutcome })
      const text = await wholeText(reply.source, mostBytes)
      if (reply.status === 201 && isFromApiServer(reply.headers)) return userIn(text)
      if (reply.status !== 404) break
    }
    await Promise.race([keysFetched(), sleep(reviewTimeoutMs, signal)])
  } catch {
    // Whatever went wrong, no API server has said it.
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
