import { readFileSync } from 'node:fs'
import { every } from '../../base/clock.ts'
import { stampOf } from '../../base/file-stamp.ts'
import {
  readCredentials,
  type CredentialFiles,
  type Credentials,
} from '../../config/credentials.ts'

/**
 * Reads the credentials that the configuration names. Throws `UnusableCredentials` or
 * `MalformedKubeconfig`.
 */
export const loadCredentials = (where: CredentialFiles): Credentials =>
  readCredentials(where, (path) => readFileSync(path, 'utf8'))

export interface CredentialFollower extends Disposable {
  /** Checks the files now. */
  check(): void
  /** Reads the credentials from elsewhere from now on, and at once. */
  move(where: CredentialFiles): void
}

/**
 * Checks the files every `intervalMs`, and calls `onChange` with credentials that differ from those
 * in force, initially `first`; touching a file is no change. While files are unusable (a key is
 * written, its certificate not yet) the last good credentials stay in force, and each check reads
 * the files again; `onUnusable` is called once for each change of such files.
 */
export function followCredentials(
  from: CredentialFiles,
  first: Credentials,
  intervalMs: number,
  onChange: (credentials: Credentials) => void,
  onUnusable: (cause: unknown) => void,
  load = loadCredentials,
): CredentialFollower {
  let where = from
  let inForce = first
  let { files } = first
  // The files of `first` may have changed since.
  let read: string | undefined
  let unusable: string | undefined
  const check = (): void => {
    const current = stampOf(files)
    if (current === read) return
    const credentials = usable(current)
    if (credentials === undefined) return
    unusable = undefined
    // Files that this read named first may have changed between the read and the stamp.
    read = credentials.files.join('\0') === files.join('\0') ? current : undefined
    files = credentials.files
    if (isSame(credentials, inForce) || losesIdentity(credentials, inForce)) return
    inForce = credentials
    onChange(credentials)
  }
  const usable = (current: string): Credentials | undefined => {
    try {
      return load(where)
    } catch (cause) {
      if (current !== unusable) onUnusable(cause)
      unusable = current
      return undefined
    }
  }
  const timer = every(intervalMs, check)
  const move = (to: CredentialFiles): void => {
    where = to
    read = undefined
    check()
  }
  return { check, move, [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/** Credentials that are yet to be obtained replace no usable ones. */
const losesIdentity = ({ awaited }: Credentials, { certificate, token }: Credentials): boolean =>
  awaited === true && (certificate !== undefined || token !== undefined)

const isSame = (one: Credentials, other: Credentials): boolean =>
  one.ca === other.ca &&
  one.serverName === other.serverName &&
  one.certificate?.chain === other.certificate?.chain &&
  one.certificate?.key.reveal() === other.certificate?.key.reveal() &&
  one.token?.reveal() === other.token?.reveal()
