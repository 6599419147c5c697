import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { elapsed, now } from '../../base/clock.ts'
import type { UpstreamAnswer, Claim, User } from '../../http/exchange/exchange.ts'
import { isFromApiServer } from '../../http/exchange/headers.ts'
import { unprovenIdentity, tokenHolder, type Identity } from '../../api/request/identity.ts'
import type { PresentedCredential } from './bearer-token.ts'
import type { ClusterKeys, Signature } from './cluster-keys.ts'
import type { TokenVerdicts } from './token-verdicts.ts'
import { parseWebToken, type NamedAccount, type WebToken } from './web-token.ts'

/**
 * How many tokens are cached with their content and the verdict on their signature, and how many
 * characters per token on average. Tokens whose claim holds have a cache of their own: no number of
 * forged tokens evicts a genuine one, which would then have to be parsed and verified again.
 */
const mostProven = 1_024
const mostUnproven = 128
const charactersOfOne = 2_048

/** How long after a failed TokenReview the hub waits before it sends another for the same token. */
export const reviewRetryMs = 30_000

interface KnownToken {
  readonly token: WebToken | undefined
  signature: Signature
  /** The generation of the keys that `signature` was verified with. */
  generation: number
  /** Pending while a TokenReview is in flight. */
  review?: Promise<Identity>
  /** When the next TokenReview may be sent, on the monotonic clock. */
  reviewableAt: number
}

export interface ClaimedIdentity {
  readonly identity: Identity
  readonly claim: Claim
}

/**
 * The identities that callers claim with their tokens, and whether a claim holds. A claim holds
 * until its token expires if the cluster signed the token or, where the signature cannot be
 * verified, if an API server has accepted the token. It never holds after an API server has refused
 * the token.
 *
 * A caller is the service account that its token names only if the cluster signed the token, or an
 * API server has confirmed that account by name and uid. That an API server accepts a token does
 * not prove its content: the caller is then identified by the token alone, and shares no cached
 * answer with any other token.
 */
export class Claims {
  readonly #hashKey: Uint8Array
  readonly #verdicts: TokenVerdicts
  readonly #keys: ClusterKeys
  readonly #proven = knownTokens(mostProven)
  readonly #unproven = knownTokens(mostUnproven)

  /**
   * `hashKey` keys the hash that identifies a token, so that the files on disk reveal nothing of
   * the token.
   */
  constructor(hashKey: Uint8Array, verdicts: TokenVerdicts, keys: ClusterKeys) {
    this.#hashKey = hashKey
    this.#verdicts = verdicts
    this.#keys = keys
  }

  of({ token }: PresentedCredential): ClaimedIdentity {
    if (token === undefined) return unprovable
    const hash = createHmac('sha256', this.#hashKey).update(token).digest('base64url')
    const known = this.#known(hash, token)
    const account = known.token?.account
    const isOpen = account && this.#signature(known) === 'unknown' && !this.#isConfirmed(hash)
    return {
      identity: this.#identity(hash, known),
      claim: {
        holds: () => this.#holds(hash, known),
        identity: () => this.#identity(hash, known),
        tokenIdentity: tokenHolder(hash),
        onUpstreamAnswer: (answer) => this.#onUpstreamAnswer(hash, known, answer),
        keyId: account && known.token.keyId,
        ...(isOpen && { confirm: (review) => this.#confirm(hash, known, account, review) }),
      },
    }
  }

  #known(hash: string, token: string): KnownToken {
    const proven = this.#proven.get(hash)
    if (proven) return proven
    const known = this.#unproven.get(hash) ?? { token: parseWebToken(token), ...unread }
    const holds = this.#holds(hash, known)
    if (holds) this.#unproven.delete(hash)
    const kept = holds ? this.#proven : this.#unproven
    kept.set(hash, known)
    return known
  }

  #identity(hash: string, known: KnownToken): Identity {
    const account = known.token?.account
    const isAccounts = this.#signature(known) === 'genuine' || this.#isConfirmed(hash)
    return account && isAccounts ? account.identity : tokenHolder(hash)
  }

  #isConfirmed(hash: string): boolean {
    return this.#verdicts.of(hash) === 'confirmed'
  }

  async #confirm(
    hash: string,
    known: KnownToken,
    account: NamedAccount,
    review: () => Promise<User | undefined>,
  ): Promise<Identity> {
    if (known.review) return known.review
    if (elapsed() < known.reviewableAt) return this.#identity(hash, known)
    const reviewed = async (): Promise<Identity> => {
      const user = await review()
      if (user?.username === account.username && user.uid === account.uid)
        this.#verdicts.confirm(hash)
      else known.reviewableAt = user ? Infinity : elapsed() + reviewRetryMs
      return this.#identity(hash, known)
    }
    known.review = reviewed().finally(() => delete known.review)
    return known.review
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

  #onUpstreamAnswer(hash: string, known: KnownToken, answer: UpstreamAnswer): void {
    if (answer.status !== 101 && !isFromApiServer(answer.headers)) return
    if (answer.status === 401) this.#verdicts.refuse(hash, this.#signature(known) === 'genuine')
    else if (provesAuthentication(answer)) this.#verdicts.accept(hash)
  }

  #signature(known: KnownToken): Signature {
    if (known.token?.account === undefined) return 'unknown'
    if (known.generation !== this.#keys.generation) {
      known.signature = this.#keys.signature(known.token)
      known.generation = this.#keys.generation
    }
    return known.signature
  }
}

const knownTokens = (max: number): LRUCache<string, KnownToken> =>
  new LRUCache({
    max,
    maxSize: max * charactersOfOne,
    sizeCalculation: ({ token }) => 1 + (token?.signed.length ?? 0),
  })

const unread = { signature: 'unknown', generation: -1, reviewableAt: 0 } as const

/**
 * For a credential that an API server does not read as a token. It answers as to an anonymous
 * caller, which proves nothing.
 */
const unprovable: ClaimedIdentity = {
  identity: unprovenIdentity,
  claim: {
    holds: () => false,
    identity: () => unprovenIdentity,
    tokenIdentity: unprovenIdentity,
    onUpstreamAnswer: () => undefined,
    keyId: undefined,
  },
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
