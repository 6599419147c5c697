import { parse } from 'yaml'
import { nameIn, variableOf, type OptionTable } from './option.ts'
import { didYouMean } from './suggestion.ts'

/** What gives settings. */
export type SettingSource = 'flag' | 'environment' | 'file'

/** The text of a setting, and its origin in an operator's words (`--serve-port`). */
export interface RawSetting {
  readonly text: string
  readonly source: SettingSource
  readonly origin: string
}

/** The settings of one source, and its mistakes. */
export interface RawSettings {
  readonly settings: ReadonlyMap<string, RawSetting>
  readonly mistakes: readonly string[]
  readonly notes: readonly string[]
  /** It could not be read: what it gives is not known. */
  readonly unread?: true
}

/** The settings of a command line, and its words that are no flags. */
export interface FlagSettings extends RawSettings {
  readonly words: readonly string[]
}

/** `-ovalue` as `-o=value`, but for a flag that lacks a dash. */
function apart(word: string, options: OptionTable): string {
  if (!/^-[a-zA-Z][^=]/.test(word)) return word
  const name = nameIn(options, word.charAt(1))
  const takesValue = name !== undefined && options[name]?.type.bare === undefined
  const [called = ''] = word.slice(1).split('=', 1)
  const isName = nameIn(options, called) !== undefined
  return takesValue && !isName ? `${word.slice(0, 2)}=${word.slice(2)}` : word
}

/**
 * Reads a command line as pflag does: `--name value`, `--name=value`, a boolean alone, `-o value`
 * and `-ovalue` for names of a letter; underscores count as dashes. A flag that the table does not
 * have takes no value from the next word. Repeated lists are joined; else the last flag counts.
 */
export function settingsFromFlags(argv: readonly string[], options: OptionTable): FlagSettings {
  const settings = new Map<string, RawSetting>()
  const words: string[] = []
  const mistakes: string[] = []
  const given = argv.values()
  for (const word of given) {
    const match = /^--?([a-zA-Z][^=]*)(?:=([\s\S]*))?$/.exec(apart(word, options))
    const called = match?.[1]?.replaceAll('_', '-')
    if (called === undefined || (!word.startsWith('--') && called.length > 1)) {
      if (word === '-' || !word.startsWith('-')) words.push(word)
      else mistakes.push(`${JSON.stringify(word)} is not a flag${meant(word, options)}`)
      continue
    }
    const shown = `${word.startsWith('--') ? '--' : '-'}${called}`
    const name = nameIn(options, called)
    const option = name === undefined ? undefined : options[name]
    if (name === undefined || option === undefined) {
      mistakes.push(`${shown} is not known${didYouMean(called, Object.keys(options), '--')}`)
      continue
    }
    const text = match?.[2] ?? option.type.bare ?? given.next().value
    if (text === undefined) mistakes.push(`${shown} needs a value`)
    else {
      const between = option.type.adds
      const before = between === undefined ? undefined : settings.get(name)?.text
      settings.set(name, {
        text: before === undefined ? text : `${before}${between}${text}`,
        source: 'flag',
        origin: shown,
      })
    }
  }
  return { settings, words, mistakes, notes: [] }
}

/** A suggestion for a flag with one dash, as Go's own flag package takes it. */
function meant(word: string, options: OptionTable): string {
  const [, called] = /^-([a-zA-Z][\w-]+)/.exec(word) ?? []
  return called === undefined ? '' : didYouMean(called, Object.keys(options), '--')
}

const prefix = variableOf('')

/**
 * Variables that Kubernetes sets in every container for a Service whose name begins with nodehub.
 */
const serviceLink = /(^|_)(SERVICE_(HOST|PORT)|PORT)(_|$)/

/**
 * Settings from the environment variables of the table; an empty one counts as absent. Other
 * variables with the prefix are not mistakes, as the operator may not have set them: a note names
 * them, except those of Kubernetes.
 */
export function settingsFromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  options: OptionTable,
): RawSettings {
  const nameOf = new Map(
    Object.entries(options).flatMap(([name, { aliases = [] }]) =>
      [name, ...aliases].map((called) => [variableOf(called).slice(prefix.length), name]),
    ),
  )
  const settings = new Map<string, RawSetting>()
  const notes: string[] = []
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith(prefix) || !text) continue
    const rest = variable.slice(prefix.length)
    const name = nameOf.get(rest)
    if (name !== undefined) settings.set(name, { text, source: 'environment', origin: variable })
    else if (!serviceLink.test(rest))
      notes.push(`${variable} is not known${didYouMean(rest, nameOf.keys(), prefix)}`)
  }
  return { settings, mistakes: [], notes }
}

/** Settings from a configuration file in YAML, of which JSON is a subset. */
export function settingsFromFile(path: string, content: string, options: OptionTable): RawSettings {
  const settings = new Map<string, RawSetting>()
  const mistakes: string[] = []
  const wrong = (what: string): number => mistakes.push(`${path}: ${what}`)
  const document = parsed(content)
  if (typeof document === 'string')
    return { settings, mistakes: [`${path}: ${document}`], notes: [], unread: true }
  for (const [key, value] of document) {
    const name = nameIn(options, key)
    if (name === undefined) wrong(`${key} is not known${didYouMean(key, Object.keys(options))}`)
    else if (key === 'config' || key === 'version') wrong(`${key} has no place in the file itself`)
    else {
      const text = textOf(value)
      if (text === undefined)
        wrong(`${key} must be a text, a number, true, false or a list of these`)
      else settings.set(name, { text, source: 'file', origin: `${path}: ${key}` })
    }
  }
  return { settings, mistakes, notes: [] }
}

/** The settings of a file by name, or why it has none that could be read. */
function parsed(content: string): [string, unknown][] | string {
  try {
    const document: unknown = parse(content)
    if (document === null || document === undefined) return []
    if (typeof document === 'object' && !Array.isArray(document)) return Object.entries(document)
    return 'must have names with values, as server-addr: https://10.0.0.1:6443'
  } catch (cause) {
    // The parser puts the place before the lines that it quotes.
    const [first = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    return `is not YAML: ${first}`.replace(
      / at line (\d+), column (\d+):$/,
      ' (line $1, column $2)',
    )
  }
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const items = value.map((item) => (Array.isArray(item) ? undefined : textOf(item)))
    return items.includes(undefined) ? undefined : items.join(',')
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined
}
