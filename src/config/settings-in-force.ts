import type { HubConfig, Setting, UsableConfig } from './config.ts'
import type { ConfigChange } from './config-watcher.ts'
import { defaultOf, isAcceptedOnly } from './option.ts'
import type { OptionName } from './options.ts'
import type { SettingSource } from './raw-settings.ts'
import { withoutPassword } from './value.ts'

/** The value of a setting as an operator would write it, without secrets, and its origin. */
export interface SettingValue {
  /** Empty: none. */
  readonly value: string
  readonly source: SettingSource | 'default'
  /** In an operator's words (`--serve-port`, `NODEHUB_SERVE_PORT`, a file and its key). */
  readonly origin?: string
  /** Whether a secret stands there, which is not shown. */
  readonly redacted?: true
}

/** A setting in force. */
export interface SettingInForce extends SettingValue {
  readonly name: OptionName
  /** Whether a change of the file of --config takes effect while the hub runs. */
  readonly live: boolean
  /** What the next start would use instead, as was read since. */
  readonly next?: SettingValue
}

/** The settings of a hub, and the mistakes of the last reading, which is not in force then. */
export interface SettingsReport {
  readonly settings: readonly SettingInForce[]
  readonly mistakes: readonly string[]
}

/**
 * Every setting as `config` has it. Flags that are only accepted for yurthub are left out unless
 * they were given.
 */
export function settingsInForce(
  config: HubConfig,
  settings: readonly Setting[],
): readonly SettingInForce[] {
  const known: Readonly<Record<string, string>> = {
    'node-name': config.nodeName,
    'disk-cache-path': config.cachePath,
    'plain-proxy': String(config.plainProxy === 'served'),
    'log-level': config.logLevel,
  }
  return settings
    .filter(({ name }) => name !== 'version')
    .filter(({ option, text }) => text !== undefined || !isAcceptedOnly(option.group))
    .map((setting) => ({
      name: setting.name,
      live: setting.option.live === true,
      ...valueOf(setting, known[setting.name]),
    }))
}

/** `known`: the value that replaces the default, if it was not given. */
function valueOf({ option, text, source, origin }: Setting, known?: string): SettingValue {
  if (text === undefined || source === undefined || origin === undefined)
    return {
      value: known ?? (option.default === undefined ? '' : defaultOf(option)),
      source: 'default',
    }
  if (option.secret) return { value: '[redacted]', source, origin, redacted: true }
  return { value: withoutPassword(text), source, origin }
}

/** The settings of a running hub, while they are read again. */
export class SettingsInForce {
  #config: HubConfig
  #settings: readonly Setting[]
  #waiting: ReadonlyMap<OptionName, Setting> = new Map()
  #mistakes: readonly string[] = []

  /** `first`: with which the hub was started. */
  constructor(first: Pick<UsableConfig, 'config' | 'settings'>) {
    this.#config = first.config
    this.#settings = first.settings
  }

  /** The configuration was read again. */
  changed({ read, waiting }: ConfigChange<UsableConfig>): void {
    const found = new Map(read.settings.map((setting) => [setting.name, setting]))
    this.#settings = this.#settings.map((before) =>
      before.option.live ? (found.get(before.name) ?? before) : before,
    )
    this.#config = read.config
    this.#waiting = new Map(
      read.settings.flatMap((one) => (waiting.includes(one.name) ? [[one.name, one]] : [])),
    )
    this.#mistakes = []
  }

  /** It was read again, and cannot be used. */
  unusable(mistakes: readonly string[]): void {
    this.#mistakes = mistakes
  }

  report(): SettingsReport {
    const settings = settingsInForce(this.#config, this.#settings).map((one) => {
      const next = this.#waiting.get(one.name)
      return next ? { ...one, next: valueOf(next) } : one
    })
    return { settings, mistakes: this.#mistakes }
  }
}
