import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { open, readdir, rename, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { now } from '../base/clock.ts'
import { writeDurably } from '../base/durable-file.ts'
import { readOwnFile } from '../base/own-file.ts'
import type { IssuedCertificate } from './authority.ts'
import { blocksIn } from './bundle.ts'
import { pemOfKey } from './keys.ts'
import { newKey } from './signing-request.ts'
import { isUsablePair } from './usable-pair.ts'
import { timeText } from './validity.ts'

const privateKey = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n?/

/**
 * A certificate and its key in one file of `folder`, to which the link `<name>-current.pem` leads,
 * as the kubelet stores its own (client-go util/certificate/certificate_store.go). A crash leaves
 * the former pair, or the new one. Only one process may write.
 */
export class StoredPair {
  readonly #folder: string
  readonly #name: string

  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
  }

  /** The link, which is replaced with the pair. */
  get file(): string {
    return join(this.#folder, `${this.#name}-current.pem`)
  }

  /**
   * The stored pair; `undefined` where there is none, or it cannot be used. Validity is not
   * checked.
   */
  read(): IssuedCertificate | undefined {
    try {
      const target = readlinkSync(this.file)
      if (!this.#isOwn(target)) return undefined
      const text = readOwnFile(join(this.#folder, target), 'secret')?.toString() ?? ''
      const certificate = blocksIn(text).join('')
      const key = privateKey.exec(text)?.[0] ?? ''
      return isUsablePair(certificate, key) ? { certificate, key } : undefined
    } catch {
      return undefined
    }
  }

  /**
   * The private key for the next pair: the same after a crash, so that the request which was made
   * with it still gets its certificate. A new one after `replace` and `forgetKey`.
   */
  async nextKey(): Promise<KeyObject> {
    const stored = this.#nextKey()
    if (stored) return stored
    const key = newKey()
    await writeDurably(this.#keyFile, pemOfKey(key))
    return key
  }

  async forgetKey(): Promise<void> {
    await rm(this.#keyFile, { force: true })
  }

  get #keyFile(): string {
    return join(this.#folder, `${this.#name}.key.tmp`)
  }

  /** Not that of the present pair, whose replacement was interrupted before the key was removed. */
  #nextKey(): KeyObject | undefined {
    try {
      const text = readOwnFile(this.#keyFile, 'secret')?.toString()
      if (text === undefined) return undefined
      const key = createPrivateKey(text)
      const current = this.read()
      const isCurrent = current && new X509Certificate(current.certificate).checkPrivateKey(key)
      return isCurrent ? undefined : key
    } catch {
      return undefined
    }
  }

  /**
   * Resolves when the pair is on the disk and in force, and the former one is removed. Throws where
   * certificate and key do not belong together, or TLS does not take them.
   */
  async replace({ certificate, key }: IssuedCertificate): Promise<void> {
    if (!isUsablePair(certificate, key))
      throw new Error(
        'the certificate is for another key than the requested one, or cannot be read',
      )
    const written = `${this.#name}-${timeText(now()).replaceAll(/\D+/g, '-').replace(/-$/, '')}.pem`
    await writeDurably(join(this.#folder, written), `${certificate.trimEnd()}\n${key}`)
    const beside = `${this.file}.new`
    await rm(beside, { force: true })
    await symlink(written, beside)
    await rename(beside, this.file)
    {
      await using folder = await open(this.#folder, 'r')
      await folder.sync()
    }
    const names = await readdir(this.#folder)
    // Also the remains of a process that was killed while it wrote.
    const former = names.filter(
      (name) => this.#isOwn(name.replace(/\.new$/, '')) && name !== written,
    )
    for (const name of former) await rm(join(this.#folder, name), { force: true })
    await this.forgetKey()
  }

  #isOwn(name: string): boolean {
    const middle = name.slice(this.#name.length)
    return basename(name) === name && name.startsWith(this.#name) && /^-\d[\d-]*\.pem$/.test(middle)
  }
}
