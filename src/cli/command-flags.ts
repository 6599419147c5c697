import { parseArgs } from 'node:util'
import { didYouMean } from '../config/suggestion.ts'
import { redactedText, type Parsed, type ValueType } from '../config/value.ts'
import { wrapped } from './wrapped.ts'

/** One flag of a command other than `start`, whose table is `config/options.ts`. */
export interface CommandFlag<T> {
  readonly type: ValueType<T>
  readonly default: NoInfer<T>
  readonly help: string
  /** The default in help texts, if the value itself would be unclear. */
  readonly defaultShown?: string
  /** Never printed. */
  readonly secret?: true
  /** The environment variable that counts where the flag is not given. */
  readonly variable?: string
  /** Its short form. */
  readonly short?: string
}

/** The same flag; the compiler infers the value's type. */
export const commandFlag = <T>(flag: CommandFlag<T>): CommandFlag<T> => flag

type Flags = Readonly<Record<string, CommandFlag<unknown>>>

/** The values of a command's flags by name. */
export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends CommandFlag<infer T> ? T : never
}

interface GivenFlags<F extends Flags> {
  readonly values: FlagValues<F>
  /** The names that were given, valid or not. */
  readonly given: ReadonlySet<string>
  /** Positional arguments. */
  readonly words: readonly string[]
  /** All mistakes, one line each. */
  readonly mistakes: readonly string[]
}

/** Parses the arguments of a command. Of a repeated flag the last one counts; lists are joined. */
export function readFlags<const F extends Flags>(
  flags: F,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): GivenFlags<F> {
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { type, short }]) => [
        name,
        {
          type: type.bare === undefined ? ('string' as const) : ('boolean' as const),
          ...(short !== undefined && { short }),
        },
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const texts = new Map<string, string>()
  const words: string[] = []
  const mistakes: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    // kubectl accepts `-o=json`, getopt does not.
    const value = token.rawName.startsWith('--') ? token.value : token.value?.replace(/^=/, '')
    const text = value ?? flag?.type.bare
    if (flag === undefined) {
      const suggestion = didYouMean(token.name, Object.keys(flags), '--')
      mistakes.push(`${token.rawName} is not known${suggestion}`)
    } else if (text === undefined) mistakes.push(`${token.rawName} needs a value`)
    else {
      const before = flag.type.adds ? texts.get(token.name) : undefined
      texts.set(token.name, before === undefined ? text : `${before},${text}`)
    }
  }
  const values = Object.entries(flags).map(([name, flag]) => {
    const text = texts.get(name) ?? env[flag.variable ?? '']
    const parsed: Parsed<unknown> =
      text === undefined ? { value: flag.default } : flag.type.parse(text)
    if ('value' in parsed) return [name, parsed.value]
    const shown = flag.secret ? 'the value' : redactedText(text ?? '')
    mistakes.push(`--${name}: ${shown} ${parsed.wrong}`)
    return [name, flag.default]
  })
  return {
    values: Object.fromEntries(values) as FlagValues<F>,
    given: new Set(texts.keys()),
    words,
    mistakes,
  }
}

/** The mistakes for positional arguments of a command that takes no more. */
export const strayWords = (words: readonly string[]): readonly string[] =>
  words.map((word) => `${JSON.stringify(word)} is not a flag`)

/** The flags in a command's help. */
export const helpOfFlags = (flags: Flags): string =>
  Object.entries(flags)
    .map(([name, flag]) => {
      const letter = flag.short === undefined ? '' : `-${flag.short}, `
      const value = flag.type.bare === undefined ? ` ${flag.type.placeholder}` : ''
      const standard = defaultShown(flag)
      const text = `${flag.help}${standard === '' ? '' : ` Default: ${standard}.`}`
      return `  ${letter}--${name}${value}\n${wrapped(text)}`
    })
    .join('')

function defaultShown({ default: value, defaultShown }: CommandFlag<unknown>): string {
  if (defaultShown !== undefined) return defaultShown
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
