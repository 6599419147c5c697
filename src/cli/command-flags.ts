import { settingsFromFlags } from '../config/raw-settings.ts'
import { variableOf, type OptionTable, type ValuesOf } from '../config/option.ts'
import { resolve, warnings } from '../config/settings.ts'

interface GivenFlags<F extends OptionTable> {
  readonly values: ValuesOf<F>
  /** The names that were given, valid or not. */
  readonly given: ReadonlySet<string>
  /** Positional arguments. */
  readonly words: readonly string[]
  /** All mistakes, one line each. */
  readonly mistakes: readonly string[]
  /** Warnings about what was given. */
  readonly notes: readonly string[]
}

/**
 * Parses the arguments of a command that reads no configuration file. A secret flag may be in the
 * environment instead, which other users of the node cannot read.
 */
export function readFlags<const F extends OptionTable>(
  flags: F,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): GivenFlags<F> {
  const { settings: given, words, mistakes: unread } = settingsFromFlags(argv, flags)
  const mistakes = [...unread]
  const settings = Object.entries(flags).map(([name, option]) => {
    const text = option.secret ? env[variableOf(name)] : undefined
    const origin = `--${name}`
    const ofEnvironment =
      text === undefined ? undefined : ({ text, source: 'environment', origin } as const)
    return resolve(name, option, given.get(name) ?? ofEnvironment, mistakes)
  })
  return {
    values: Object.fromEntries(settings.map(({ name, value }) => [name, value])) as ValuesOf<F>,
    given: new Set(given.keys()),
    words,
    mistakes,
    notes: warnings(settings),
  }
}
