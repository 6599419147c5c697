import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { elapsed, now } from '../../base/clock.ts'
import type { Answered, Claim, User } from '../../http/exchange/exchange.ts'
import { areApiServers } from '../../http/exchange/headers.ts'
import { nobody, tokenHolder, type Identity } from '../../api/request/identity.ts'
import type { Shown } from './bearer-token.ts'
import type { ClusterKeys, Signature } from './cluster-keys.ts'
import type { Proofs } from './proofs.ts'
import { readWebToken, type NamedAccount, type WebToken } from './web-token.ts'

/**
 * How many tokens, of how many characters together, are remembered with their content and the
 * verdict on their signature: of those whose claim holds, and of others apart from them, so that no
 * number of made-up tokens has genuine ones read and verified again.
 */
const mostKnown = 1_024
const mostUnproven = 128
const charactersOfOne = 2_048

/**
 * After how long API servers are asked again who the holder of a token is, where none has said it.
 */
export const retryMs = 30_000

interface Known {
  readonly token: WebToken | undefined
  signature: Signature
  /** The generation of the keys that `signature` was found with. */
  generation: number
  /** While API servers are asked who the token's holder is. */
  review?: Promise<Identity>
  /** When they may be asked, by the clock that never goes back. */
  reviewableAt: number
}

export interface Claimed {
  readonly identity: Identity
  readonly claim: Claim
}

/**
 * Whom callers claim to be by their tokens, and whether that holds. A claim holds until its token
 * expires if the cluster signed the token or, where that cannot be told, if an API server has
 * accepted it; never again once an API server has refused it.
 *
 * A caller is the service account that its token names only where the cluster signed the token, or
 * an API server has confirmed that account by name and uid. That a token is accepted says nothing
 * of what stands in it: its holder is the holder of this token then, and of nothing that another
 * was given.
 */
export class Claims {
  readonly #hashKey: Uint8Array
  readonly #proofs: Proofs
  readonly #keys: ClusterKeys
  readonly #proven = knownTokens(mostKnown)
  readonly #unproven = knownTokens(mostUnproven)

  /**
   * `hashKey` keys the hash that stands for a token, so that what is written to disk says nothing
   * of it.
   */
  constructor(hashKey: Uint8Array, proofs: Proofs, keys: ClusterKeys) {
    this.#hashKey = hashKey
    this.#proofs = proofs
    this.#keys = keys
  }

  of({ token }: Shown): Claimed {
    if (token === undefined) return unprovable
    const hash = createHmac('sha256', this.#hashKey).update(token).digest('base64url')
    const known = this.#known(hash, token)
    const account = known.token?.account
    const isOpen = account && this.#signature(known) === 'unknown' && !this.#isConfirmed(hash)
    return {
      identity: this.#identity(hash, known),
      claim: {
        holds: () => this.#holds(hash, known),
        holder: () => this.#identity(hash, known),
        alone: tokenHolder(hash),
        answered: (answer) => this.#heed(hash, known, answer),
        keyId: account && known.token.keyId,
        ...(isOpen && { confirm: (ask) => this.#confirm(hash, known, account, ask) }),
      },
    }
  }

  #known(hash: string, token: string): Known {
    const proven = this.#proven.get(hash)
    if (proven) return proven
    const known = this.#unproven.get(hash) ?? { token: readWebToken(token), ...unread }
    const holds = this.#holds(hash, known)
    if (holds) this.#unproven.delete(hash)
    const kept = holds ? this.#proven : this.#unproven
    kept.set(hash, known)
    return known
  }

  #identity(hash: string, known: Known): Identity {
    const account = known.token?.account
    const isAccounts = this.#signature(known) === 'genuine' || this.#isConfirmed(hash)
    return account && isAccounts ? account.identity : tokenHolder(hash)
  }

  #isConfirmed(hash: string): boolean {
    return this.#proofs.of(hash) === 'confirmed'
  }

  async #confirm(
    hash: string,
    known: Known,
    account: NamedAccount,
    ask: () => Promise<User | undefined>,
  ): Promise<Identity> {
    if (known.review) return known.review
    if (elapsed() < known.reviewableAt) return this.#identity(hash, known)
    known.review = this.#review(hash, known, account, ask).finally(() => delete known.review)
    return known.review
  }

  async #review(
    hash: string,
    known: Known,
    account: NamedAccount,
    ask: () => Promise<User | undefined>,
  ): Promise<Identity> {
    const user = await ask()
    if (user?.username === account.username && user.uid === account.uid) this.#proofs.confirm(hash)
    else known.reviewableAt = user ? Infinity : elapsed() + retryMs
    return this.#identity(hash, known)
  }

  #holds(hash: string, known: Known): boolean {
    const { expiresAt = Infinity, notBefore = 0 } = known.token ?? {}
    const verdict = this.#proofs.of(hash)
    if (verdict === 'refused' || expiresAt <= now()) return false
    const signature = this.#signature(known)
    if (signature === 'forged') return false
    // With the node's clock behind, a genuine token may seem not valid yet: then an acceptance
    // counts.
    if (signature === 'genuine' && notBefore <= now()) return true
    return verdict !== undefined
  }

  #heed(hash: string, known: Known, answer: Answered): void {
    if (!areApiServers(answer.headers)) return
    if (answer.status === 401) this.#proofs.refuse(hash, this.#signature(known) === 'genuine')
    else if (provesAuthentication(answer)) this.#proofs.accept(hash)
  }

  #signature(known: Known): Signature {
    if (known.token?.account === undefined) return 'unknown'
    if (known.generation !== this.#keys.generation) {
      known.signature = this.#keys.signature(known.token)
      known.generation = this.#keys.generation
    }
    return known.signature
  }
}

const knownTokens = (max: number): LRUCache<string, Known> =>
  new LRUCache({
    max,
    maxSize: max * charactersOfOne,
    sizeCalculation: ({ token }) => 1 + (token?.signed.length ?? 0),
  })

const unread = { signature: 'unknown', generation: -1, reviewableAt: 0 } as const

/**
 * For a credential that an API server does not read as a token: it answers as to anybody, which
 * proves nothing.
 */
const unprovable: Claimed = {
  identity: nobody,
  claim: {
    holds: () => false,
    holder: () => nobody,
    alone: nobody,
    answered: () => undefined,
    keyId: undefined,
  },
}

/**
 * Whether the answer shows that the token was accepted. When an API server is overloaded or
 * stopping, a request malformed or a browser's preflight, it answers before it looks at the token
 * (apiserver pkg/server/config.go, DefaultBuildHandlerChain).
 */
const provesAuthentication = ({ status, method }: Answered): boolean =>
  method !== 'OPTIONS' && ((status >= 200 && status < 300) || [403, 404, 409].includes(status))
