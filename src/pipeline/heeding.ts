import { lengthOf } from '../base/bytes.ts'
import { after, elapsed } from '../base/clock.ts'
import { Chunks } from '../exchange/chunks.ts'
import type { BytesReply, Exchange } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { isApiServers } from '../identity/claims.ts'
import type { ClusterKeys, PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward } from '../remote/forward.ts'
import { isLongRunning, parseRequestInfo, type RequestInfo } from '../request/request-info.ts'

export interface HeedingOptions {
  readonly keys: ClusterKeys
  readonly onLearned: () => void
  /** Called with the reason when the keys could not be fetched; they are asked for again later. */
  readonly onFailure: (cause: unknown) => void
}

/** How long fetched keys are believed to be all: clusters change theirs once in years. */
const learnedForMs = 12 * 3_600_000
const retryMs = 60_000

/** Keys that take longer than this to come, or are larger, are not used. */
const patienceMs = 10_000
const mostBytes = 1024 * 1024

/**
 * The same forwarder; it tells the caller's claim what was answered, and fetches the cluster's keys when they are due. It fetches them with
 * the token of a service account that an API server has just accepted: service accounts may read the keys, nodes may not
 * (system:service-account-issuer-discovery).
 */
export function heeding(forward: Forward, { keys, onLearned, onFailure }: HeedingOptions): Forward {
  let askableAt = 0
  let learnedUntil = 0
  const isDue = (keyId: string): boolean =>
    elapsed() >= askableAt && (elapsed() >= learnedUntil || !keys.has(keyId))
  const learn = async (exchange: Exchange): Promise<void> => {
    askableAt = elapsed() + retryMs
    try {
      keys.learn(await publishedKeys(forward, exchange))
      learnedUntil = elapsed() + learnedForMs
      onLearned()
    } catch (error) {
      onFailure(error)
    }
  }
  return async (exchange, options) => {
    const reply = await forward(exchange, options)
    const { claim, method, info } = exchange
    if (reply.status !== 401 || !isRelayed(info))
      claim?.answered({ method, status: reply.status, headers: reply.headers })
    if (claim?.keyId !== undefined && isDue(claim.keyId) && claim.holds()) void learn(exchange)
    return reply
  }
}

/**
 * Whether the API server relays the request to a pod, a service or a kubelet: a 401 may then be theirs, and says nothing of the caller's
 * token.
 */
const isRelayed = (info: RequestInfo): boolean =>
  info.isResource && info.subresource !== undefined && isLongRunning(info)

async function publishedKeys(forward: Forward, exchange: Exchange): Promise<PublishedKeys> {
  const read = async (path: string): Promise<unknown> =>
    JSON.parse(await textAt(forward, exchange, path))
  const { issuer } = (await read('/.well-known/openid-configuration')) as PublishedKeys
  const { keys } = (await read('/openid/v1/jwks')) as PublishedKeys
  return { issuer, keys }
}

/** What an API server answers the caller of `exchange` at `path`. Throws unless it answers 200, within `patienceMs` and `mostBytes`. */
async function textAt(forward: Forward, exchange: Exchange, path: string): Promise<string> {
  const giveUp = new AbortController()
  using _patience = after(patienceMs, () => giveUp.abort(new Error('no answer in time')))
  using _rest = { [Symbol.dispose]: () => giveUp.abort(new Error('read')) }
  const { headers, body: _body, ...rest } = exchange
  const asked: Exchange = {
    ...rest,
    method: 'GET',
    url: path,
    headers: new HeaderList([
      ...['authorization'].flatMap((name) => headers.all(name).flatMap((value) => [name, value])),
      'Accept',
      '*/*',
    ]),
    info: parseRequestInfo('GET', path),
    forms: [],
    signal: giveUp.signal,
  }
  const reply = await forward(asked, { onOutcome: () => undefined })
  const text = await textOf(reply)
  if (reply.status !== 200) throw new Error(`${path} was answered ${reply.status}`)
  // A gateway that authenticates people may publish its own keys at the same path.
  if (!isApiServers(reply)) throw new Error(`${path} was not answered by an API server`)
  return text
}

async function textOf({ source }: BytesReply): Promise<string> {
  const received: Uint8Array[] = []
  for await (const group of new Chunks(source)) {
    received.push(...group)
    if (lengthOf(received) > mostBytes)
      throw new Error(`the answer is longer than ${mostBytes} bytes`)
  }
  return Buffer.concat(received).toString()
}
