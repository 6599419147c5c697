import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { ScopeKey } from './address.ts'

const algorithm = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

/**
 * Encrypts bytes that must not be on a disk in the clear. Sealed bytes open only in the place they
 * were sealed for: not in another row, and not changed.
 */
export class Seal {
  readonly #key: Uint8Array

  /** `key` has 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  close(plain: Uint8Array, place: string): Buffer {
    const nonce = randomBytes(nonceLength)
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagLength })
    cipher.setAAD(Buffer.from(place))
    const sealed = cipher.update(plain)
    return Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()])
  }

  /** `undefined`: sealed with another key or for another place, or damaged. */
  open(sealed: Uint8Array, place: string): Buffer | undefined {
    if (sealed.byteLength < nonceLength + tagLength) return undefined
    const end = sealed.byteLength - tagLength
    const nonce = sealed.subarray(0, nonceLength)
    const decipher = createDecipheriv(algorithm, this.#key, nonce, { authTagLength: tagLength })
    decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(end))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(nonceLength, end)), decipher.final()])
    } catch {
      return undefined
    }
  }

  /** Equal for equal bytes, and tells nothing of them without the key. */
  digest(plain: Uint8Array): number {
    return createHmac('sha256', this.#key).update(plain).digest().readUInt32LE()
  }
}

/** Secrets in every representation, and tokens of service accounts. */
export const isSealed = ([, , group, , resource]: ScopeKey): boolean =>
  group === '' && (resource === 'secrets' || resource === 'serviceaccounts/token')
