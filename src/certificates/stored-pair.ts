import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { open, readdir, rename, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { now } from '../base/clock.ts'
import { writeDurably } from '../base/durable-file.ts'
import { readOwnFile } from '../base/own-file.ts'
import type { IssuedCertificate } from './authority.ts'
import { timeText } from './validity.ts'

const certificates = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g
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

  /** `undefined` where there is none, or one that cannot be used. Validity is not checked. */
  read(): IssuedCertificate | undefined {
    try {
      const target = readlinkSync(this.file)
      if (!this.#isOwn(target)) return undefined
      const text = readOwnFile(join(this.#folder, target), 'secret')?.toString() ?? ''
      const certificate = text.match(certificates)?.join('') ?? ''
      const key = privateKey.exec(text)?.[0] ?? ''
      const fits = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
      return fits ? { certificate, key } : undefined
    } catch {
      return undefined
    }
  }

  /** Resolves when the pair is on the disk and in force, and the former one is removed. */
  async replace({ certificate, key }: IssuedCertificate): Promise<void> {
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
    const former = names.filter((name) => this.#isOwn(name) && name !== written)
    for (const name of former) await rm(join(this.#folder, name), { force: true })
  }

  #isOwn(name: string): boolean {
    const middle = name.slice(this.#name.length)
    return basename(name) === name && name.startsWith(this.#name) && /^-\d[\d-]*\.pem$/.test(middle)
  }
}
