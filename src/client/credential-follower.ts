import { readFileSync, statSync } from 'node:fs'
import { every } from '../base/clock.ts'
import { readCredentials, type CredentialFiles, type Credentials } from '../config/credentials.ts'

/** Reads the credentials where the configuration says they are. Throws `UnusableCredentials` or `MalformedKubeconfig`. */
export const loadCredentials = (where: CredentialFiles): Credentials =>
  readCredentials(where, (path) => readFileSync(path, 'utf8'))

export interface CredentialFollower extends Disposable {
  /** Looks at the files now. */
  look(): void
}

/**
 * Looks at the files of `first` every `intervalMs` and tells of credentials that changed. Files that are unusable for the moment (a key
 * already written, its certificate not yet) leave the last good ones in force; `onUnusable` is told once a change.
 */
export function followCredentials(
  where: CredentialFiles,
  first: Credentials,
  intervalMs: number,
  onChange: (credentials: Credentials) => void,
  onUnusable: (cause: unknown) => void,
): CredentialFollower {
  let { files } = first
  let seen = stamp(files)
  const look = (): void => {
    const current = stamp(files)
    if (current === seen) return
    seen = current
    try {
      const credentials = loadCredentials(where)
      if (credentials.files.join('\0') !== files.join('\0')) {
        files = credentials.files
        seen = stamp(files)
      }
      onChange(credentials)
    } catch (cause) {
      onUnusable(cause)
    }
  }
  const timer = every(intervalMs, look)
  return { look, [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/** Changes when any of the files does: inode too, as certificates are rotated by renaming a link. */
function stamp(files: readonly string[]): string {
  return files
    .map((file) => {
      const stats = statSync(file, { throwIfNoEntry: false })
      return stats ? `${stats.ino}:${stats.size}:${stats.mtimeMs}` : 'absent'
    })
    .join('|')
}
