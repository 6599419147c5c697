import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { now } from '../../base/clock.ts'
import type { UpstreamAnswer, Claim, Incoming } from '../../http/exchange/exchange.ts'
import { isFromApiServer } from '../../http/exchange/headers.ts'
import { unprovenIdentity, tokenHolder, type Identity } from '../../api/request/identity.ts'
import type { ClusterKeys, Signature } from './cluster-keys.ts'
import type { TokenVerdicts } from './token-verdicts.ts'
import { parseWebToken, type WebToken } from './web-token.ts'

/**
 * How many tokens are cached with their content and the verdict on their signature, and how many
 * characters per token on average. One that others have evicted is parsed and verified again.
 */
const mostTokens = 1_024
const charactersOfOne = 2_048

interface KnownToken {
  readonly token: WebToken | undefined
  signature: Signature
  /** The generation of the keys that `signature` was verified with. */
  generation: number
  /** Pending while the signature is verified. */
  verifying?: Promise<void>
}

/**
 * The identities that callers claim with their tokens, and whether a claim holds. A claim holds
 * until its token expires if the cluster signed the token or, where the signature cannot be
 * verified, if an API server has accepted the token. It never holds after an API server has refused
 * the token.
 *
 * A caller is the service account that its token names only if the cluster signed the token. That
 * an API server accepts a token does not prove its content: the caller is then identified by the
 * token alone, and shares no cached answer with any other token.
 */
export class Claims {
  readonly #hashKey: Uint8Array
  readonly #verdicts: TokenVerdicts
  readonly #keys: ClusterKeys
  readonly #known = new LRUCache<string, KnownToken>({
    max: mostTokens,
    maxSize: mostTokens * charactersOfOne,
    sizeCalculation: ({ token }) => 1 + (token?.text.length ?? 0),
  })

  /**
   * `hashKey` keys the hash that identifies a token, so that the files on disk reveal nothing of
   * the token.
   */
  constructor(hashKey: Uint8Array, verdicts: TokenVerdicts, keys: ClusterKeys) {
    this.#hashKey = hashKey
    this.#verdicts = verdicts
    this.#keys = keys
  }

  /**
   * Waits only where the signature is not verified yet with the cluster's present keys: once for
   * each token.
   */
  of({ token }: PresentedCredential): Claim | Promise<Claim> {
    if (token === undefined) return unprovable
    const hash = createHmac('sha256', this.#hashKey).update(token).digest('base64url')
    const cached = this.#known.get(hash)
    const known = cached ?? { token: parseWebToken(token), ...unread }
    // Requests that come meanwhile with the same token wait for the same.
    if (!cached) this.#known.set(hash, known)
    const claim = this.#claimOf(hash, known)
    return this.#isVerified(known) ? claim : this.#verify(known).then(() => claim)
  }

  #claimOf(hash: string, known: KnownToken): Claim {
    return {
      holds: () => this.#holds(hash, known),
      identity: () => this.#identity(hash, known),
      verifiedIdentity: async () => {
        await this.#verify(known)
        return this.#identity(hash, known)
      },
      onUpstreamAnswer: (answer) => this.#onUpstreamAnswer(hash, known, answer),
      keyId: known.token?.account && known.token.keyId,
    }
  }

  #identity(hash: string, known: KnownToken): Identity {
    const account = known.token?.account
    return account && this.#signature(known) === 'genuine' ? account : tokenHolder(hash)
  }

  #holds(hash: string, known: KnownToken): boolean {
    const { expiresAt = Infinity, notBefore = 0 } = known.token ?? {}
    const verdict = this.#verdicts.of(hash)
    if (verdict === 'refused' || expiresAt <= now()) return false
    const signature = this.#signature(known)
    if (signature === 'forged') return false
    // If the node's clock is behind, a genuine token may seem not valid yet. An API server's
    // acceptance counts then.
    if (signature === 'genuine' && notBefore <= now()) return true
    return verdict !== undefined
  }

  #onUpstreamAnswer(
    hash: string,
    known: KnownToken,
    answer: UpstreamAnswer,
  ): Promise<void> | undefined {
    if (answer.status !== 101 && !isFromApiServer(answer.headers)) return undefined
    if (answer.status === 401)
      return this.#verdicts.refuse(hash, this.#signature(known) === 'genuine')
    return provesAuthentication(answer) ? this.#verdicts.accept(hash) : undefined
  }

  /** Until the signature is verified with the cluster's present keys, it is not known. */
  #signature(known: KnownToken): Signature {
    if (this.#isVerified(known)) return known.signature
    void this.#verify(known)
    return 'unknown'
  }

  #isVerified({ token, generation }: KnownToken): boolean {
    return token?.account === undefined || generation === this.#keys.generation
  }

  async #verify(known: KnownToken): Promise<void> {
    if (known.token === undefined || this.#isVerified(known)) return
    const verified = async (token: WebToken): Promise<void> => {
      const { generation } = this.#keys
      known.signature = await this.#keys.signature(token)
      known.generation = generation
    }
    known.verifying ??= verified(known.token).finally(() => delete known.verifying)
    await known.verifying
  }
}

const unread = { signature: 'unknown', generation: -1 } as const

/**
 * For a credential that an API server does not read as a token. The API server answers it as an
 * anonymous caller, which proves nothing.
 */
const unprovable: Claim = {
  holds: () => false,
  identity: () => unprovenIdentity,
  verifiedIdentity: async () => unprovenIdentity,
  onUpstreamAnswer: () => undefined,
  keyId: undefined,
}

/**
 * Whether the answer shows that the API server accepted the token. An overloaded or stopping API
 * server, and any API server for a malformed request or a CORS preflight, answers before it
 * authenticates (apiserver pkg/server/config.go, DefaultBuildHandlerChain). A 101 has no Audit-Id:
 * an API server that has authorized the request takes over the connection, or relays the head of a
 * kubelet's answer (apimachinery pkg/util/proxy/upgradeaware.go).
 */
const provesAuthentication = ({ status, method }: UpstreamAnswer): boolean =>
  method !== 'OPTIONS' && ((status >= 200 && status < 300) || [101, 403, 404, 409].includes(status))

/**
 * Browsers cannot set Authorization on a WebSocket: they send the token as a subprotocol with this
 * prefix (apiserver pkg/authentication/request/websocket).
 */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** The Authorization credential of a request. */
export interface PresentedCredential {
  /**
   * The token that an API server reads from it; `undefined` where an API server reads none and
   * treats the caller as anonymous.
   */
  readonly token: string | undefined
}

/**
 * The credential of a request; `undefined` where it carries none. Reads a token only where an API
 * server does (apiserver pkg/authentication/request/bearertoken, websocket): an answer to any other
 * request does not show that a token is valid.
 */
export function presentedCredential({
  headers,
  upgrade,
}: Incoming): PresentedCredential | undefined {
  const authorization = headers.get('authorization')
  if (authorization !== undefined) {
    return { token: headers.isRepeated('authorization') ? undefined : bearerToken(authorization) }
  }
  if (!headers.has('sec-websocket-protocol')) return undefined
  const offered = headers.all('sec-websocket-protocol').flatMap((value) => value.split(','))
  const protocol = offered.map((name) => name.trim()).find((name) => name.startsWith(tokenProtocol))
  if (protocol === undefined) return undefined
  const token = Buffer.from(protocol.slice(tokenProtocol.length), 'base64url').toString()
  return { token: upgrade && isToken(token) ? token : undefined }
}

/** Node has taken off the blanks around a field. */
function bearerToken(authorization: string): string | undefined {
  const [scheme = '', token = ''] = authorization.split(' ', 3)
  return scheme.toLowerCase() === 'bearer' && isToken(token) ? token : undefined
}

/** The characters of RFC 6750, at most as long as a request head can be. */
const isToken = (text: string): boolean =>
  text.length <= 16_384 && /^[A-Za-z0-9\-._~+/]+=*$/.test(text)
