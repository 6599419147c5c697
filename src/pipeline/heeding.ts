import { after, elapsed } from '../base/clock.ts'
import type { BytesReply, Exchange } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { isApiServers } from '../identity/claims.ts'
import type { ClusterKeys, PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward } from '../remote/forward.ts'
import { isLongRunning, parseRequestInfo, type RequestInfo } from '../request/request-info.ts'

export interface HeedingOptions {
  readonly keys: ClusterKeys
  readonly onLearned: () => void
  /** The keys could not be had, for the reason given; they are asked for again later. */
  readonly onFailure: (cause: unknown) => void
}

/** Clusters change their keys once in years. */
const learnedForMs = 12 * 3_600_000
const retryMs = 60_000

/** Over these the keys are not waited for, and not taken. */
const patienceMs = 10_000
const mostBytes = 1024 * 1024

/**
 * Forwards, and heeds what the answer says about who asked. With the token of a service account that an API server has just
 * accepted, the cluster's keys are asked for, which service accounts may read and nodes may not (system:service-account-issuer-discovery).
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
 * Whether the API server asks somebody else in turn, whose 401 it passes on as its own: a pod or service behind its proxy, a kubelet that
 * does not know it.
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

/** What an API server itself has at `path`, for the caller of `exchange`. Throws where it is not answered 200, soon and in bounds. */
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
  const text = await whole(reply)
  if (reply.status !== 200) throw new Error(`${path} was answered ${reply.status}`)
  // Gateways that know people publish keys of their own there.
  if (!isApiServers(reply)) throw new Error(`${path} was not answered by an API server`)
  return text
}

const whole = ({ source }: BytesReply): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let bytes = 0
    source({
      write: (chunk) => {
        bytes += chunk.byteLength
        if (bytes <= mostBytes) chunks.push(chunk)
        else reject(new Error('there is too much of it'))
        return bytes <= mostBytes
      },
      // Whoever has sent too much is never read on, and given up with the signal.
      drained: () => new Promise(() => undefined),
      end: () => resolve(Buffer.concat(chunks).toString()),
      fail: reject,
    })
  })
