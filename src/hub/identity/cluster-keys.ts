import { createPublicKey, verify, type KeyObject, type webcrypto } from 'node:crypto'
import { StateFile } from '../../base/state-file.ts'
import { readOwnFile } from '../../base/own-file.ts'
import type { WebToken } from './web-token.ts'

/** The verdict on a token's signature; `unknown` where the known keys cannot verify it. */
export type Signature = 'genuine' | 'forged' | 'unknown'

/** A JSON web key (RFC 7517), which tokens name by `kid`. */
export type PublishedKey = webcrypto.JsonWebKey & { readonly kid?: string }

/** What API servers publish for verifiers of their tokens (OpenID Connect discovery, RFC 7517). */
export interface PublishedKeys {
  readonly issuer: string
  readonly keys: readonly PublishedKey[]
}

interface Algorithm {
  readonly hash: string
  readonly type: 'rsa' | 'ec'
}

/**
 * The algorithms that API servers sign with (kubernetes pkg/serviceaccount/jwt.go), each with its
 * key type.
 */
const algorithms = new Map<string, Algorithm>([
  ['RS256', { hash: 'sha256', type: 'rsa' }],
  ['ES256', { hash: 'sha256', type: 'ec' }],
  ['ES384', { hash: 'sha384', type: 'ec' }],
  ['ES512', { hash: 'sha512', type: 'ec' }],
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
  #published: PublishedKeys | undefined
  #issuer = ''
  #keys = new Map<string, KeyObject>()
  #generation = 0

  constructor(file: string) {
    this.#file = new StateFile(file, () => JSON.stringify(this.#published))
    try {
      this.#take(JSON.parse(String(readOwnFile(file))) as PublishedKeys)
    } catch {
      this.#keys.clear()
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
    this.#published = published
    await this.#file.write()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }

  #take({ issuer, keys }: PublishedKeys): void {
    const usable = new Map(
      keys.slice(0, mostKeys).flatMap((jwk) => {
        const key = keyIn(jwk)
        return key && jwk.kid !== undefined ? [[jwk.kid, key] as const] : []
      }),
    )
    if (typeof issuer !== 'string' || issuer === '' || usable.size === 0)
      throw new Error('no key with an id and an issuer is published')
    this.#issuer = issuer
    this.#keys = usable
    this.#generation++
  }

  /**
   * Whether the cluster signed the token for its own API servers. Does not check the token's
   * validity period. Synchronous, as who a caller is decides where its request goes before anything
   * of it waits: by Web Crypto, as jose verifies, each request would wait for a promise.
   */
  signature(token: WebToken): Signature {
    const key = this.#keys.get(token.keyId)
    const algorithm = algorithms.get(token.algorithm)
    if (key === undefined || token.issuer !== this.#issuer) return 'unknown'
    // API servers may accept further audiences, but do not publish them.
    if (!token.audiences.includes(this.#issuer)) return 'unknown'
    if (algorithm === undefined || key.asymmetricKeyType !== algorithm.type) return 'forged'
    const genuine = verify(
      algorithm.hash,
      Buffer.from(token.signed),
      { key, dsaEncoding: 'ieee-p1363' },
      token.signature,
    )
    return genuine ? 'genuine' : 'forged'
  }
}

/** `undefined` for an unsupported kind of key. */
function keyIn(jwk: PublishedKey): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}
