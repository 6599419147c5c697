import { parseArgs } from 'node:util'
import { nearest } from '../config/suggestion.ts'
import { redactedText, type Parsed, type ValueType } from '../config/value.ts'

/** One flag of a command besides `start`, whose table is `config/options.ts`. */
export interface CommandFlag<T> {
  readonly type: ValueType<T>
  readonly default: NoInfer<T>
  readonly help: string
  /** How help words the default, where the value itself would not be clear. */
  readonly defaultShown?: string
  /** The letter that stands for it. */
  readonly short?: string
}

/** The same flag; lets the compiler find the value's type. */
export const commandFlag = <T>(flag: CommandFlag<T>): CommandFlag<T> => flag

type Flags = Readonly<Record<string, CommandFlag<unknown>>>

/** The values of a command's flags by name. */
export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]: F[Name] extends CommandFlag<infer T> ? T : never
}

interface GivenFlags<F extends Flags> {
  readonly values: FlagValues<F>
  /** The names that were given, whatever their values. */
  readonly given: ReadonlySet<string>
  /** Words that are no flags, in their order. */
  readonly words: readonly string[]
  /** All that is wrong, each to be shown on a line. */
  readonly mistakes: readonly string[]
}

/**
 * Reads what stands behind a command's name. Of a flag given again the last one counts, but lists
 * grow.
 */
export function readFlags<const F extends Flags>(flags: F, argv: readonly string[]): GivenFlags<F> {
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
    // `-o=json` is what kubectl takes, and getopt does not.
    const value = token.rawName.startsWith('--') ? token.value : token.value?.replace(/^=/, '')
    const text = value ?? flag?.type.bare
    if (flag === undefined) {
      const meant = nearest(token.name, Object.keys(flags))
      mistakes.push(`${token.rawName} is not known${meant ? `, did you mean --${meant}?` : ''}`)
    } else if (text === undefined) mistakes.push(`${token.rawName} needs a value`)
    else {
      const before = flag.type.adds ? texts.get(token.name) : undefined
      texts.set(token.name, before === undefined ? text : `${before},${text}`)
    }
  }
  const values = Object.entries(flags).map(([name, flag]) => {
    const text = texts.get(name)
    const parsed: Parsed<unknown> =
      text === undefined ? { value: flag.default } : flag.type.parse(text)
    if ('value' in parsed) return [name, parsed.value]
    mistakes.push(`--${name}: ${redactedText(text ?? '')} ${parsed.wrong}`)
    return [name, flag.default]
  })
  return {
    values: Object.fromEntries(values) as FlagValues<F>,
    given: new Set(texts.keys()),
    words,
    mistakes,
  }
}

/** What is wrong with words that are no flags, where a command takes none or no more. */
export const strayWords = (words: readonly string[]): readonly string[] =>
  words.map((word) => `${JSON.stringify(word)} is not a flag`)

/** The flags as a command's help tells of them. */
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

function wrapped(text: string): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + word.length >= 86) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line) => `        ${line}\n`).join('')
}
