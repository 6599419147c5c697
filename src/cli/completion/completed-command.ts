/** A command as a script of a shell completes it. */
export interface CompletedCommand {
  readonly name: string
  readonly summary: string
  /** One of these comes first; none: no word does. */
  readonly words: readonly string[]
  /** Whether file names may follow. */
  readonly files: boolean
  readonly flags: readonly {
    readonly name: string
    readonly short: string | undefined
    /** One line; '' if there is none. */
    readonly help: string
    readonly takesValue: boolean
    /** All values, if there are few. */
    readonly values: readonly string[]
    readonly takesPath: boolean
  }[]
}

export const comment = '# Printed by nodehub completion.'

/** The text as one word of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
