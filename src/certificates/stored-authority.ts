import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { writeDurablySync } from '../base/durable-file.ts'
import { makeSyncedFolder } from '../base/folder.ts'
import { readOwnFile } from '../base/own-file.ts'
import { CertificateAuthority } from './authority.ts'

/** The common name of a hub's own authority. Node names may exceed the limit of a common name. */
const commonName = 'nodehub-ca'

/**
 * The authority whose certificate and key are stored in `folder`. If there is none, or an unusable
 * one, creates one and calls `onMade`. It does not expire: a node that was switched off for years,
 * or starts with its clock at 1970, serves the same clients. Throws if the folder cannot be read or
 * written.
 */
export function storedAuthority(folder: string, onMade: () => void): CertificateAuthority {
  makeSyncedFolder(folder, 0o700)
  const keyFile = join(folder, 'ca.key')
  const file = join(folder, 'ca.crt')
  const certificate = readOwnFile(file)?.toString()
  const key = readOwnFile(keyFile, 'secret')?.toString()
  if (certificate !== undefined && key !== undefined && belongTogether(certificate, key))
    return new CertificateAuthority(commonName, { certificate, key })
  const made = new CertificateAuthority(commonName)
  writeDurablySync(keyFile, made.key)
  writeDurablySync(file, made.certificate)
  onMade()
  return made
}

function belongTogether(certificate: string, key: string): boolean {
  try {
    const own = new X509Certificate(certificate)
    return own.subject === `CN=${commonName}` && own.checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
