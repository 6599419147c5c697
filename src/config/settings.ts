import { contentOf, type ReadFile } from './credentials.ts'
import {
  settingsFromEnvironment,
  settingsFromFile,
  settingsFromFlags,
  type RawSetting,
  type RawSettings,
  type SettingSource,
} from './raw-settings.ts'
import { nameIn, type Option, type OptionTable } from './option.ts'
import { redactedText } from './value.ts'

export interface SettingSources {
  /** The arguments after the command's name. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: ReadFile
}

/** A setting with its value and origin. */
export interface ResolvedSetting<Name extends string> {
  readonly name: Name
  readonly option: Option<unknown>
  readonly value: unknown
  /** The given text; absent: the default. */
  readonly text?: string
  readonly source?: SettingSource
  /** The origin of the text; absent: the default. */
  readonly origin?: string
}

/**
 * The settings of a table from flags, environment, file and defaults, in this order of precedence.
 */
export interface ResolvedSettings<Name extends string> {
  readonly settings: readonly ResolvedSetting<Name>[]
  /** Whether the setting was given, valid or not. */
  readonly given: (name: Name) => boolean
  readonly mistakes: readonly string[]
  readonly notes: readonly string[]
  /** Whether a source could not be read, so that what is missing may stand there. */
  readonly unread: boolean
}

/** Reads every setting of `table`. A setting with a mistake gets its default. */
export function readSettings<Table extends OptionTable>(
  { argv, env, readFile }: SettingSources,
  table: Table,
): ResolvedSettings<keyof Table & string> {
  const flags = settingsFromFlags(argv, table)
  const environment = settingsFromEnvironment(env, table)
  const sources = [flags, environment, fileNamedBy(flags, environment, readFile, table)]
  const [ofFlags = [], ...others] = sources.map((source) => source.mistakes)
  const mistakes = [...ofFlags, ...strayWords(flags.words, table), ...others.flat()]
  const settings = Object.entries(table).map(([name, option]) => {
    const found = sources.map((source) => source.settings.get(name)).find((setting) => setting)
    return resolve(name as keyof Table & string, option, found, mistakes)
  })
  return {
    settings,
    given: (name) => sources.some((source) => source.settings.has(name)),
    mistakes,
    notes: sources.flatMap((source) => source.notes),
    unread: sources.some((source) => source.unread),
  }
}

function fileNamedBy(
  flags: RawSettings,
  environment: RawSettings,
  readFile: ReadFile,
  table: OptionTable,
): RawSettings {
  const named = flags.settings.get('config') ?? environment.settings.get('config')
  const nothing: RawSettings = { settings: new Map(), mistakes: [], notes: [] }
  if (named === undefined || named.text === '') return nothing
  try {
    return settingsFromFile(named.text, contentOf(named.text, readFile), table)
  } catch (cause) {
    return { ...nothing, mistakes: [`${named.origin}: ${messageOf(cause)}`], unread: true }
  }
}

/** A setting with its value; one with a mistake counts as not given. */
export function resolve<Name extends string>(
  name: Name,
  option: Option<unknown>,
  given: RawSetting | undefined,
  mistakes: string[],
): ResolvedSetting<Name> {
  const fallback = { name, option, value: option.default }
  if (given === undefined) return fallback
  const parsed = option.type.parse(given.text)
  if ('value' in parsed) return { name, option, value: parsed.value, ...given }
  const text = option.secret ? 'the value' : redactedText(given.text)
  mistakes.push(`${given.origin}: ${text} ${parsed.wrong}`)
  return fallback
}

/** The mistakes for positional arguments of a command that takes no more. */
export const strayWords = (words: readonly string[], table: OptionTable): readonly string[] =>
  words.map((word) => {
    const [called = ''] = word.split('=', 1)
    const isName = nameIn(table, called) !== undefined
    return `${JSON.stringify(word)} is not a flag${isName ? `, did you mean --${called}?` : ''}`
  })

export const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause)

/** Runs `act`; a failure is a mistake of the setting `name`. */
export function attempt(mistakes: string[], name: string, act: () => unknown): void {
  try {
    act()
  } catch (cause) {
    mistakes.push(`${name}: ${messageOf(cause)}`)
  }
}

/** Mistakes for files that settings name and that cannot be read. */
export function unreadableFiles(
  settings: readonly ResolvedSetting<string>[],
  readFile: ReadFile,
): string[] {
  const mistakes: string[] = []
  for (const { name, option, value, origin } of settings) {
    if (option.file && typeof value === 'string')
      attempt(mistakes, origin ?? name, () => contentOf(value, readFile))
  }
  return mistakes
}

/** Warnings about the values that were given: without effect, or mapped to others. */
export function warnings(settings: readonly ResolvedSetting<string>[]): string[] {
  return settings.flatMap(({ option, value, origin }) => {
    const warning = origin === undefined ? undefined : option.warningFor?.(value)
    return warning === undefined ? [] : [`${origin} ${warning}`]
  })
}
