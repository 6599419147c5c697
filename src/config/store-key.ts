import { posix } from 'node:path'
import type { ValueType } from './value.ts'

/** Where the key of the node comes from, which seals what must not lie on its disk in the clear. */
export type StoreKeySource =
  /** Made by the hub, in its own folder. */
  | { readonly kind: 'own' }
  /** A file that the service manager made for this process alone. */
  | { readonly kind: 'credential'; readonly file: string }
  /** What this program prints. */
  | { readonly kind: 'command'; readonly path: string }

/** Name of a credential, as systemd takes it (systemd.exec(5), LoadCredential=). */
export const credentialName: ValueType<string> = {
  placeholder: 'NAME',
  parse: (text) =>
    /^[\w.@-]{1,255}$/.test(text) && text !== '.' && text !== '..'
      ? { value: text }
      : { wrong: 'is not the name of a credential (letters, digits, . _ @ -)' },
}

/** Run as it is, so that no folder and no shell decides what it is. */
export const program: ValueType<string> = {
  placeholder: '/PATH',
  parse: (text) =>
    posix.isAbsolute(text) && !/\s/.test(text)
      ? { value: text }
      : { wrong: 'is not the absolute path of a program, without arguments' },
}

/** What must be given for `credential` to be found. `directory` is $CREDENTIALS_DIRECTORY. */
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
