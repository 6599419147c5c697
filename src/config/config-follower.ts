import { every } from '../base/clock.ts'
import { stampOf } from '../base/file-stamp.ts'
import { readConfig, type ConfigResult, type ConfigSources, type Setting } from './config.ts'
import type { HubConfig } from './hub-config.ts'
import type { OptionName } from './options.ts'

/** A configuration that was read without a mistake. */
export type UsableConfig = Extract<ConfigResult, { readonly config: HubConfig }>

export interface ConfigFollower extends Disposable {
  /** Reads everything again, whether or not the file looks as if it had changed. */
  read(): void
}

/** The outcome of reading the configuration again. */
export interface ConfigNews {
  /** The whole configuration, including settings that only the next start acts upon. */
  readonly config: HubConfig
  /** Settings that now have another value and take effect while the hub runs. */
  readonly changed: readonly OptionName[]
  /** Settings that differ from what the hub was started with and wait for its next start; each value is told once. */
  readonly pending: readonly OptionName[]
  /** Warnings for the operator that the last reading did not give. */
  readonly notes: readonly string[]
}

export interface ConfigListener {
  onRead(news: ConfigNews): void
  /** Its mistakes, given once for each change of the file. The last good configuration stays in force, whole. */
  onUnusable(mistakes: readonly string[]): void
}

/**
 * Looks at the file of --config every `intervalMs` and reads it again when it has changed; `first` is in force to begin with. Flags and
 * environment do not change, and still take precedence.
 */
export function followConfig(
  sources: ConfigSources,
  first: UsableConfig,
  intervalMs: number,
  listener: ConfigListener,
): ConfigFollower {
  const file = first.settings.find(({ name }) => name === 'config')?.value
  const files = typeof file === 'string' ? [file] : []
  const started = valuesOf(first.settings)
  let { notes } = first
  let inForce = started
  let told = started
  // What `first` was read from may have changed since; if not, there is nothing to tell.
  let stamp: string | undefined
  const look = (asked = false): void => {
    const expected = asked || stamp !== undefined
    stamp = stampOf(files)
    const result = readConfig(sources)
    if ('mistakes' in result) return listener.onUnusable(result.mistakes)
    const values = valuesOf(result.settings)
    const names = [...values.keys()]
    const differs = (name: OptionName, from: Values): boolean => values.get(name) !== from.get(name)
    const isLive = new Map(result.settings.map(({ name, option }) => [name, option.live === true]))
    const changed = names.filter((name) => isLive.get(name) && differs(name, inForce))
    const pending = names.filter(
      (name) => !isLive.get(name) && differs(name, started) && differs(name, told),
    )
    inForce = told = values
    if (!expected && changed.length + pending.length === 0) return
    const unsaid = result.notes.filter((note) => !notes.includes(note))
    notes = result.notes
    listener.onRead({ config: result.config, changed, pending, notes: unsaid })
  }
  const timer = every(intervalMs, () => {
    if (files.length > 0 && stampOf(files) !== stamp) look()
  })
  const read = (): void => look(true)
  return { read, [Symbol.dispose]: () => timer[Symbol.dispose]() }
}

/** Values in a form that can be compared. */
type Values = ReadonlyMap<OptionName, string | undefined>

const valuesOf = (settings: readonly Setting[]): Values =>
  new Map(settings.map(({ name, value }) => [name, JSON.stringify(value)]))
