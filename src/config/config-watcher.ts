import { every } from '../base/clock.ts'
import { stampOf } from '../base/file-stamp.ts'
import type { ConfigSources, LiveConfig, Setting, UnusableConfig, UsableConfig } from './config.ts'
import type { OptionName } from './options.ts'
import { messageOf } from './settings.ts'

export interface ConfigWatcher extends Disposable {
  /** Reads everything again, whether or not a file looks as if it had changed. */
  read(): void
}

/** The outcome of reading the configuration again. */
export interface ConfigChange<Read extends UsableConfig> {
  /** All that was read, including settings that only the next start acts upon. */
  readonly read: Read
  /** What is to be in force from now on. */
  readonly live: LiveConfig
  /** Settings that now have another value and take effect while the hub runs. */
  readonly changed: readonly OptionName[]
  /** Settings that differ from what the hub was started with and wait for its next start. */
  readonly waiting: readonly OptionName[]
  /** Those of them whose value has not been told yet. */
  readonly unreported: readonly OptionName[]
  /** Warnings for the operator that the last reading did not give. */
  readonly notes: readonly string[]
}

export interface ConfigListener<Read extends UsableConfig> {
  onRead(news: ConfigChange<Read>): void
  /**
   * All its mistakes, given once for each change of them. The last good configuration stays in
   * force, whole.
   */
  onUnusable(mistakes: readonly string[]): void
}

/**
 * How what the operator has changed is read: as at the start, with everything that the settings
 * name.
 */
export interface ReloadOptions<Read extends UsableConfig> {
  readonly sources: ConfigSources
  readonly read: (sources: ConfigSources) => Promise<Read | UnusableConfig>
  readonly intervalMs: number
}

/**
 * Looks at the file of --config every `intervalMs` and reads the configuration again when it has
 * changed; `first` is in force to begin with. While it cannot be used, every file is looked at that
 * was read for it: one of those may be what is wrong. Flags and environment do not change, and
 * still take precedence.
 */
export function watchConfig<Read extends UsableConfig>(
  first: UsableConfig,
  { sources, read, intervalMs }: ReloadOptions<Read>,
  listener: ConfigListener<Read>,
): ConfigWatcher {
  const file = first.settings.find(({ name }) => name === 'config')?.value
  const files = typeof file === 'string' ? [file] : []
  const started = valuesOf(first.settings)
  let { notes } = first
  let inForce = started
  let told = started
  let unusable: string | undefined
  let followed = files
  /**
   * What was seen of each before it was read last. What `first` was read from may have changed
   * since.
   */
  let stamps: ReadonlyMap<string, string> = new Map()
  let isFirst = true
  let isAsked = false
  let isReading = false
  let isClosed = false

  const look = async (expected: boolean): Promise<void> => {
    stamps = new Map(followed.map((each) => [each, stampOf([each])]))
    const named = new Set(files)
    const readFile = (path: string): string => {
      named.add(path)
      return sources.readFile(path)
    }
    const result = await read({ ...sources, readFile }).catch((cause: unknown): UnusableConfig => ({
      mistakes: [messageOf(cause)],
      filterModules: [],
    }))
    if (isClosed) return
    if ('mistakes' in result) {
      followed = [...named.union(new Set(result.filterModules))]
      refuse(result.mistakes, expected)
    } else {
      followed = files
      take(result, expected)
    }
  }
  const refuse = (mistakes: readonly string[], expected: boolean): void => {
    const before = unusable
    unusable = mistakes.join('\n')
    if (expected || unusable !== before) listener.onUnusable(mistakes)
  }
  const take = (result: Read, expected: boolean): void => {
    const values = valuesOf(result.settings)
    const names = [...values.keys()]
    const differs = (name: OptionName, from: Values): boolean => values.get(name) !== from.get(name)
    const isLive = new Map(result.settings.map(({ name, option }) => [name, option.live === true]))
    const changed = names.filter((name) => isLive.get(name) && differs(name, inForce))
    const waiting = names.filter((name) => !isLive.get(name) && differs(name, started))
    const untold = waiting.filter((name) => differs(name, told))
    const isNews = !isFirst || expected || unusable !== undefined
    inForce = told = values
    unusable = undefined
    isFirst = false
    // Where nothing has changed since the start there is nothing to tell.
    if (!isNews && changed.length + untold.length === 0) return
    const unsaid = result.notes.filter((note) => !notes.includes(note))
    notes = result.notes
    const live = result.liveUnder(first.config)
    listener.onRead({ read: result, live, changed, waiting, unreported: untold, notes: unsaid })
  }
  const lookOn = async (): Promise<void> => {
    if (isReading) return
    isReading = true
    do {
      const expected = isAsked
      isAsked = false
      await look(expected)
    } while (isAsked && !isClosed)
    isReading = false
  }
  const timer = every(intervalMs, () => {
    if (followed.some((each) => stampOf([each]) !== stamps.get(each))) void lookOn()
  })
  return {
    read() {
      isAsked = true
      void lookOn()
    },
    [Symbol.dispose]() {
      isClosed = true
      timer[Symbol.dispose]()
    },
  }
}

/** How an operator is told of settings that have been changed and are not in force. */
export const waitsForNextStart = (names: readonly string[]): string =>
  `${names.map((name) => `--${name}`).join(', ')}: the change takes effect at the next start`

/** Values in a form that can be compared. */
type Values = ReadonlyMap<OptionName, string | undefined>

const valuesOf = (settings: readonly Setting[]): Values =>
  new Map(settings.map(({ name, value }) => [name, JSON.stringify(value)]))
