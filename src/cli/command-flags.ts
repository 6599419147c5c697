import { processSources } from '../config/process.ts'
import { settingsFromFlags } from '../config/raw-settings.ts'
import { variableOf, type OptionTable, type ValuesOf } from '../config/option.ts'
import { resolve, strayWords, warnings } from '../config/settings.ts'
import { refuse, type Command, type ExitCode, type Terminal } from './command.ts'

export interface GivenFlags<F extends OptionTable> {
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
): GivenFlags<F> {
  const { env } = processSources([])
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

interface FlagCommand<F extends OptionTable> extends Omit<Command, 'flags' | 'run'> {
  readonly flags: F
  /** Mistakes in positional arguments; absent: there are to be none. */
  readonly wrongWords?: (words: readonly string[]) => readonly string[]
  /** Mistakes in the combination of flags. */
  readonly wrong?: (given: GivenFlags<F>) => readonly string[]
  readonly act: (given: GivenFlags<F>, terminal: Terminal) => Promise<ExitCode>
}

/** A command that reads flags alone, and refuses them with all mistakes before it acts. */
export function flagCommand<const F extends OptionTable>({
  wrongWords,
  wrong,
  act,
  ...command
}: FlagCommand<F>): Command {
  const { flags, usage } = command
  const [name = ''] = /^[a-z-]+( [a-z]+)*/.exec(usage) ?? []
  return {
    ...command,
    async run(argv, terminal) {
      const given = readFlags(flags, argv.slice(name.split(' ').length - 1))
      const mistakes = [
        ...given.mistakes,
        ...(wrongWords?.(given.words) ?? strayWords(given.words, flags)),
        ...(wrong?.(given) ?? []),
      ]
      if (mistakes.length > 0) return refuse(terminal, name, mistakes)
      // On standard error: they are visible if standard output is piped into kubectl.
      for (const note of given.notes) terminal.err(`note: ${note}\n`)
      return act(given, terminal)
    },
  }
}
