import { after } from '../../base/clock.ts'
import { wholeText } from '../../http/exchange/chunks.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { isFromApiServer, HeaderList } from '../../http/exchange/headers.ts'
import type { PublishedKeys } from '../identity/cluster-keys.ts'
import type { Forward } from '../upstream/forward.ts'
import { parseRequestInfo } from '../../api/request/request-info.ts'

/** Keys that are larger, or take longer, are not used. */
const patienceMs = 10_000
const mostBytes = 1024 * 1024

/**
 * The keys that the cluster publishes, read with the credentials of `exchange`. Throws where they
 * are not available, or not an API server's.
 */
export async function publishedKeys(forward: Forward, exchange: Exchange): Promise<PublishedKeys> {
  const read = async (path: string): Promise<unknown> =>
    JSON.parse(await textAt(forward, exchange, path))
  const { issuer } = (await read('/.well-known/openid-configuration')) as PublishedKeys
  const { keys } = (await read('/openid/v1/jwks')) as PublishedKeys
  return { issuer, keys }
}

/**
 * An API server's answer to the caller of `exchange` at `path`. Throws unless it is a 200, within
 * `patienceMs` and `mostBytes`.
 */
async function textAt(forward: Forward, exchange: Exchange, path: string): Promise<string> {
  const giveUp = new AbortController()
  using _patience = after(patienceMs, () => giveUp.abort(new Error('no answer in time')))
  using _rest = { [Symbol.dispose]: () => giveUp.abort(new Error('read')) }
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
    signal: giveUp.signal,
  }
  const reply = await forward(request, { onOutcome: () => undefined })
  const text = await wholeText(reply.source, mostBytes)
  if (reply.status !== 200) throw new Error(`${path} was answered ${reply.status}`)
  // A gateway that authenticates people may publish its own keys at the same path.
  if (!isFromApiServer(reply.headers)) throw new Error(`${path} was not answered by an API server`)
  return text
}
