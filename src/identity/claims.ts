import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { now } from '../base/clock.ts'
import type { Answered, Claim } from '../exchange/exchange.ts'
import { areApiServers } from '../exchange/headers.ts'
import { nobody, tokenHolder, type Identity } from '../request/identity.ts'
import type { Shown } from './bearer-token.ts'
import type { ClusterKeys, Signature } from './cluster-keys.ts'
import type { Proofs } from './proofs.ts'
import { readWebToken, type WebToken } from './web-token.ts'

/**
 * How many tokens, of how many characters together, are remembered with their content and the verdict on their signature: of those whose
 * claim holds, and of others apart from them, so that no number of made-up tokens has genuine ones read and verified again.
 */
const mostKnown = 1_024
const mostUnproven = 128
const charactersOfOne = 2_048

interface Known {
  readonly token: WebToken | undefined
  signature: Signature
  /** The generation of the keys that `signature` was found with. */
  generation: number
}

export interface Claimed {
  readonly identity: Identity
  readonly claim: Claim
}

/**
 * Whom callers claim to be by their tokens, and whether that holds. A claim holds until its token expires if the cluster signed the token
 * or, where that cannot be told, if an API server has accepted it; never again once an API server has refused it.
 */
export class Claims {
  readonly #hashKey: Uint8Array
  readonly #proofs: Proofs
  readonly #keys: ClusterKeys
  readonly #proven = knownTokens(mostKnown)
  readonly #unproven = knownTokens(mostUnproven)

  /** `hashKey` keys the hash that stands for a token, so that what is written to disk says nothing of it. */
  constructor(hashKey: Uint8Array, proofs: Proofs, keys: ClusterKeys) {
    this.#hashKey = hashKey
    this.#proofs = proofs
    this.#keys = keys
  }

  of({ token }: Shown): Claimed {
    if (token === undefined) return unprovable
    const hash = createHmac('sha256', this.#hashKey).update(token).digest('base64url')
    const known = this.#known(hash, token)
    return {
      identity: known.token?.account ?? tokenHolder(hash),
      claim: {
        holds: () => this.#holds(hash, known),
        answered: (answer) => this.#heed(hash, known, answer),
        keyId: known.token?.account && known.token.keyId,
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

  #holds(hash: string, known: Known): boolean {
    const { expiresAt = Infinity, notBefore = 0 } = known.token ?? {}
    const verdict = this.#proofs.of(hash)
    if (verdict === 'refused' || expiresAt <= now()) return false
    const signature = this.#signature(known)
    if (signature === 'forged') return false
    // With the node's clock behind, a genuine token may seem not valid yet: then an acceptance counts.
    if (signature === 'genuine' && notBefore <= now()) return true
    return verdict === 'accepted'
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

const unread = { signature: 'unknown', generation: -1 } as const

/** For a credential that an API server does not read as a token: it answers as to anybody, which proves nothing. */
const unprovable: Claimed = {
  identity: nobody,
  claim: { holds: () => false, answered: () => undefined, keyId: undefined },
}

/**
 * Whether the answer shows that the token was accepted. When an API server is overloaded or stopping, a request malformed or a browser's
 * preflight, it answers before it looks at the token (apiserver pkg/server/config.go, DefaultBuildHandlerChain).
 */
const provesAuthentication = ({ status, method }: Answered): boolean =>
  method !== 'OPTIONS' && ((status >= 200 && status < 300) || [403, 404, 409].includes(status))
