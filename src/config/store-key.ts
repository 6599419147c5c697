import { posix } from 'node:path'
import { matching } from './value.ts'

/** The source of the key that seals secrets in the store. */
export type StoreKeySource =
  /** Created by the hub, in its own folder. */
  | { readonly kind: 'own' }
  /** A file that the service manager created for this process. */
  | { readonly kind: 'credential'; readonly file: string }
  /** The output of this program. */
  | { readonly kind: 'command'; readonly path: string }

/** The name of a credential in systemd (systemd.exec(5), LoadCredential=). */
export const credentialName = matching(
  'NAME',
  /^(?!\.{1,2}$)[\w.@-]{1,255}$/,
  'is not the name of a credential (letters, digits, . _ @ -)',
)

/** An absolute path, so that neither a search path nor a shell chooses the program. */
export const program = matching(
  '/PATH',
  /^\/\S*$/,
  'is not the absolute path of a program, without arguments',
)

/** The source of the key, or what is missing for it. `directory` is $CREDENTIALS_DIRECTORY. */
export function storeKeySource(
  { credential, command }: { credential: string | undefined; command: string | undefined },
  directory: string | undefined,
): StoreKeySource | { readonly wrong: string } {
  if (credential !== undefined && command !== undefined)
    return { wrong: '--store-key-credential and --store-key-command: give one of them' }
  if (command !== undefined) return { kind: 'command', path: command }
  if (credential === undefined) return { kind: 'own' }
  if (directory === undefined || directory === '') {
    const unit = `LoadCredential=${credential}:... or LoadCredentialEncrypted=${credential}:... in the unit`
    return {
      wrong: `--store-key-credential=${credential}: no credentials were passed ($CREDENTIALS_DIRECTORY is not set), write ${unit}`,
    }
  }
  return { kind: 'credential', file: posix.join(directory, credential) }
}
