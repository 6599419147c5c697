import { readFileSync } from 'node:fs'
import { every } from '../../base/clock.ts'
import { stampOf } from '../../base/file-stamp.ts'
import {
  readCredentials,
  type CredentialFiles,
  type Credentials,
} from '../../config/credentials.ts'

/**
 * Reads the credentials where the configuration says they are. Throws `UnusableCredentials` or
 * `MalformedKubeconfig`.
 */
export const loadCredentials = (where: CredentialFiles): Credentials =>
  readCredentials(where, (path) => readFileSync(path, 'utf8'))

export interface CredentialFollower extends Disposable {
  /** Looks at the files now. */
  check(): void
  /** Reads the credentials elsewhere from now on, and at once. */
  move(where: CredentialFiles): void
}

/**
 * Looks at the files every `intervalMs` and calls `onChange` with credentials that differ from
 * those in force, `first` to begin with; touching a file is no change. While files are unusable (a
 * key already written, its certificate not yet) the last good credentials stay in force and the
 * files are read again at each look; `onUnusable` is called once for each change of such files.
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
  // What `first` was read from may have changed since.
  let read: string | undefined
  let unusable: string | undefined
  const check = (): void => {
    const current = stampOf(files)
    if (current === read) return
    const credentials = usable(current)
    if (credentials === undefined) return
    unusable = undefined
    // Files that were named only now may have changed between being read and being looked at.
    read = credentials.files.join('\0') === files.join('\0') ? current : undefined
    files = credentials.files
    if (isSame(credentials, inForce)) return
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

const isSame = (one: Credentials, other: Credentials): boolean =>
  one.ca === other.ca &&
  one.serverName === other.serverName &&
  one.certificate?.chain === other.certificate?.chain &&
  one.certificate?.key.reveal() === other.certificate?.key.reveal() &&
  one.token?.reveal() === other.token?.reveal()
