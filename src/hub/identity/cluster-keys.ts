import { createPublicKey, type webcrypto } from 'node:crypto'
import type { CompactVerifyGetKey } from 'jose'
import { StateFile } from '../../base/state-file.ts'
import { readOwnFile } from '../../base/own-file.ts'
import { UnusableAnswer } from '../../http/exchange/exchange.ts'
import type { WebToken } from './web-token.ts'

/** The verdict on a token's signature; `unknown` where the known keys cannot verify it. */
export type Signature = 'genuine' | 'forged' | 'unknown'

/** A JSON web key (RFC 7517), which tokens name by `kid`. */
export type PublishedKey = webcrypto.JsonWebKey & { readonly kid?: string }

/**
 * The documents that API servers publish for verifiers of their tokens (OpenID Connect discovery,
 * RFC 7517).
 */
export interface PublishedKeys {
  readonly issuer: string
  readonly keys: readonly PublishedKey[]
}

/** The algorithms with which API servers sign (kubernetes pkg/serviceaccount/jwt.go). */
const algorithms = ['RS256', 'ES256', 'ES384', 'ES512']

/**
 * The errors of jose for a token that is not signed with the key it names. Its other errors mean
 * that it cannot use the key, such as one that is too short, or that it cannot be loaded.
 */
const forgeries = new Set([
  'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
  'ERR_JWS_INVALID',
  'ERR_JOSE_ALG_NOT_ALLOWED',
  'ERR_JWKS_NO_MATCHING_KEY',
])

/** More keys than any cluster has; the rest is ignored. */
const mostKeys = 64

/**
 * The keys that the cluster signs service account tokens with, kept in `file` for use while no API
 * server is reachable. Empty until `learn`, or if the file cannot be read. Disposing waits for
 * pending writes.
 */
export class ClusterKeys implements AsyncDisposable {
  readonly #file: StateFile
  #issuer = ''
  #keys: ReadonlyMap<string, PublishedKey> = new Map()
  /** Made of `#keys` for the first token; `undefined` until then. */
  #keySet: CompactVerifyGetKey | undefined
  #generation = 0

  constructor(file: string) {
    this.#file = new StateFile(file, () =>
      JSON.stringify({ issuer: this.#issuer, keys: [...this.#keys.values()] }),
    )
    try {
      this.#take(JSON.parse(String(readOwnFile(file))) as PublishedKeys)
    } catch {
      this.#keys = new Map()
    }
  }

  /** Changes with the keys: a verdict on a signature is valid for one generation. */
  get generation(): number {
    return this.#generation
  }

  has(keyId: string): boolean {
    return this.#keys.has(keyId)
  }

  /**
   * Uses the keys from now on. Resolves when they are on the disk; rejects where they cannot be
   * written, or none of them is usable.
   */
  async learn(published: PublishedKeys): Promise<void> {
    this.#take(published)
    await this.#file.write()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }

  #take({ issuer, keys }: PublishedKeys): void {
    const usable = new Map(
      keys
        .slice(0, mostKeys)
        .flatMap((key) =>
          key.kid !== undefined && isPublicKey(key) ? [[key.kid, key] as const] : [],
        ),
    )
    if (typeof issuer !== 'string' || issuer === '' || usable.size === 0)
      throw new UnusableAnswer('no key with an id and an issuer is published')
    this.#issuer = issuer
    this.#keys = usable
    this.#keySet = undefined
    this.#generation++
  }

  /**
   * Whether the cluster signed the token for its own API servers. Does not check the token's
   * validity period. Loads jose, which a hub without such tokens needs not.
   */
  async signature({ text, keyId, issuer, audiences }: WebToken): Promise<Signature> {
    if (!this.has(keyId) || issuer !== this.#issuer) return 'unknown'
    // API servers may accept further audiences, but do not publish them.
    if (!audiences.includes(this.#issuer)) return 'unknown'
    try {
      const { compactVerify, createLocalJWKSet } = await import('jose')
      this.#keySet ??= createLocalJWKSet({ keys: [...this.#keys.values()] })
      await compactVerify(text, this.#keySet, { algorithms })
      return 'genuine'
    } catch (error) {
      return forgeries.has((error as { readonly code?: string }).code ?? '') ? 'forged' : 'unknown'
    }
  }
}

function isPublicKey(jwk: PublishedKey): boolean {
  try {
    createPublicKey({ key: jwk, format: 'jwk' })
    return true
  } catch {
    return false
  }
}
