import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { writeDurablySync } from '../base/durable-file.ts'
import { makeSyncedFolder } from '../base/folder.ts'
import { readOwnFile } from '../base/own-file.ts'
import { CertificateAuthority, type IssuedCertificate } from './authority.ts'
import { blocksIn } from './bundle.ts'

/** The common name of a hub's own authority. Node names may exceed the limit of a common name. */
const commonName = 'nodehub-ca'

/** A new authority of a hub, which is stored nowhere yet. */
export const newAuthority = (): Promise<CertificateAuthority> =>
  CertificateAuthority.create(commonName)

/**
 * The authority whose certificate and key are stored in `folder`. If there is none, or an unusable
 * one, creates one and calls `onMade`. It does not expire: a node that was switched off for years,
 * or starts with its clock at 1970, serves the same clients. Rejects if the folder cannot be read
 * or written.
 */
export async function storedAuthority(
  folder: string,
  onMade: () => void,
): Promise<CertificateAuthority> {
  const stored = usableAuthority(folder)
  if (stored) return new CertificateAuthority(stored)
  const made = await newAuthority()
  write(folder, made)
  onMade()
  return made
}

/** Stores `made` in `folder`, unless a usable authority is stored there. Throws as above. */
export function storeAuthority(folder: string, made: CertificateAuthority): void {
  if (usableAuthority(folder) === undefined) write(folder, made)
}

/**
 * Publishes the certificate of the authority that is stored in `folder`, and `others` (PEM) after
 * it, to the clients of the hub. Throws as above.
 */
export function publishAuthorities(
  folder: string,
  { certificate }: CertificateAuthority,
  others: string | undefined,
): void {
  const text = others === undefined ? certificate : `${certificate.trimEnd()}\n${others}`
  const { file } = filesIn(folder)
  if (readOwnFile(file)?.toString() !== text) writeDurablySync(file, text)
}

const filesIn = (folder: string) => ({ key: join(folder, 'ca.key'), file: join(folder, 'ca.crt') })

function usableAuthority(folder: string): IssuedCertificate | undefined {
  makeSyncedFolder(folder, 0o700)
  // Those of others may follow.
  const [certificate] = blocksIn(readOwnFile(filesIn(folder).file)?.toString() ?? '')
  const key = readOwnFile(filesIn(folder).key, 'secret')?.toString()
  return certificate !== undefined && key !== undefined && belongTogether(certificate, key)
    ? { certificate, key }
    : undefined
}

function write(folder: string, { certificate, key }: CertificateAuthority): void {
  writeDurablySync(filesIn(folder).key, key)
  writeDurablySync(filesIn(folder).file, certificate)
}

function belongTogether(certificate: string, key: string): boolean {
  try {
    const own = new X509Certificate(certificate)
    return own.subject === `CN=${commonName}` && own.checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
