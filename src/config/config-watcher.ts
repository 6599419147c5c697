import { every } from '../base/clock.ts'
import { stampOf } from '../base/file-stamp.ts'
import type { ConfigSources, Setting, UnusableConfig, UsableConfig } from './config.ts'
import type { OptionName } from './options.ts'
import { messageOf } from './settings.ts'

export interface ConfigWatcher extends Disposable {
  /** Reads the configuration again, even if no file has changed. */
  read(): void
}

/** The result of reading the configuration again. */
export interface ConfigChange<Read extends UsableConfig> {
  /** Its configuration is in force from now on; its settings may wait for the next start. */
  readonly read: Read
  /** Live settings whose value has changed. */
  readonly changed: readonly OptionName[]
  /** Settings that differ from those at the start and take effect at the next one. */
  readonly waiting: readonly OptionName[]
  /** Warnings that the previous reading did not have. */
  readonly notes: readonly string[]
}

export interface ConfigListener<Read extends UsableConfig> {
  onRead(change: ConfigChange<Read>): void
  /**
   * Called with all mistakes, once for each change of them. The last valid configuration stays in
   * force as a whole.
   */
  onUnusable(mistakes: readonly string[]): void
}

/** How to read the configuration again: as at the start, with every file that the settings name. */
export interface ReloadOptions<Read extends UsableConfig> {
  readonly sources: ConfigSources
  readonly read: (sources: ConfigSources) => Promise<Read | UnusableConfig>
  readonly intervalMs: number
}

/**
 * Checks the files of --config and --filter-module every `intervalMs`, and reads the configuration
 * again if one has changed; `first` is in force at the beginning. While the configuration is
 * unusable, every file that was read for it is checked: one of those may be wrong. Flags and
 * environment do not change, and take precedence.
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
  let unusable: string | undefined
  const followed = ({ config }: UsableConfig) => [...files, ...config.filters.modules]
  let watched = followed(first)
  /**
   * The stamp of each file before its last reading. Empty at first: a file may have changed since
   * `first` was read.
   */
  let stamps: ReadonlyMap<string, string> = new Map()
  let isFirst = true
  let isRequested = false
  let isReading = false
  let isClosed = false

  const readOnce = async (expected: boolean): Promise<void> => {
    stamps = new Map(watched.map((each) => [each, stampOf([each])]))
    const named = new Set(files)
    const readFile = (path: string): string => {
      named.add(path)
      return sources.readFile(path)
    }
    const result = await read({ ...sources, readFile, running: first }).catch(
      (cause: unknown): UnusableConfig => ({ mistakes: [messageOf(cause)], filterModules: [] }),
    )
    if (isClosed) return
    if ('mistakes' in result) {
      watched = [...named.union(new Set(result.filterModules))]
      reject(result.mistakes, expected)
    } else {
      watched = followed(result)
      // Those that it names for the first time have just been read.
      stamps = new Map(watched.map((each) => [each, stamps.get(each) ?? stampOf([each])]))
      apply(result, expected)
    }
  }
  const reject = (mistakes: readonly string[], expected: boolean): void => {
    const before = unusable
    unusable = mistakes.join('\n')
    if (expected || unusable !== before) listener.onUnusable(mistakes)
  }
  const apply = (result: Read, expected: boolean): void => {
    const values = valuesOf(result.settings)
    const names = [...values.keys()]
    const differs = (name: OptionName, from: Values): boolean => values.get(name) !== from.get(name)
    const isLive = new Map(result.settings.map(({ name, option }) => [name, option.live === true]))
    const changed = names.filter((name) => isLive.get(name) && differs(name, inForce))
    const waiting = names.filter((name) => !isLive.get(name) && differs(name, started))
    const isRenewed = result.revision !== first.revision
    const isReported = !isFirst || expected || unusable !== undefined || isRenewed
    inForce = values
    unusable = undefined
    isFirst = false
    // The first reading without a change is not reported.
    if (!isReported && changed.length + waiting.length === 0) return
    const newNotes = result.notes.filter((note) => !notes.includes(note))
    notes = result.notes
    listener.onRead({ read: result, changed, waiting, notes: newNotes })
  }
  const readAll = async (): Promise<void> => {
    if (isReading) return
    isReading = true
    do {
      const expected = isRequested
      isRequested = false
      await readOnce(expected)
    } while (isRequested && !isClosed)
    isReading = false
  }
  const timer = every(intervalMs, () => {
    if (watched.some((each) => stampOf([each]) !== stamps.get(each))) void readAll()
  })
  return {
    read() {
      isRequested = true
      void readAll()
    },
    [Symbol.dispose]() {
      isClosed = true
      timer[Symbol.dispose]()
    },
  }
}

/** The message for changed settings that are not in force. */
export const waitsForNextStart = (names: readonly string[]): string =>
  `${names.map((name) => `--${name}`).join(', ')}: the change takes effect at the next start`

/** Values as comparable text. */
type Values = ReadonlyMap<OptionName, string | undefined>

const valuesOf = (settings: readonly Setting[]): Values =>
  new Map(settings.map(({ name, value }) => [name, JSON.stringify(value)]))
