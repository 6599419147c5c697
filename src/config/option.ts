import type { ValueType } from './value.ts'

/** Headings of the help text, in its order. */
export const groups = [
  'API servers',
  'Credentials',
  'Listeners',
  'Webhooks',
  'Leader election',
  'Pools',
  'Node',
  'Cache',
  'Filters',
  'Operation',
  'Accepted from yurthub, without effect here',
] as const

export type Group = (typeof groups)[number]

/**
 * One setting: a flag, an environment variable and a key of the configuration file, of one name.
 */
export interface Option<T> {
  readonly type: ValueType<T>
  readonly group: Group
  readonly help: string
  readonly default: NoInfer<T>
  /** How help words the default, where the value itself would not be clear. */
  readonly defaultShown?: string
  /** Names files that must be readable for the configuration to be valid. */
  readonly file?: true
  /** Never printed. */
  readonly secret?: true
  /** Takes effect while the hub runs, when the file of --config changes. */
  readonly live?: true
  /**
   * A warning for the operator who gave this value, if it needs one: that it has no effect, or what
   * it was mapped to.
   */
  warningFor?(value: NoInfer<T>): string | undefined
}

/** The settings of one command, by flag name. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>

/**
 * One that takes effect while the hub runs; by its type, so that the configuration is divided by
 * this mark alone.
 */
interface LiveOption<T> extends Option<T> {
  readonly live: true
}

/** The same option; lets the compiler find the value's type, and whether it is live. */
export function option<T>(option: LiveOption<T>): LiveOption<T>
export function option<T>(option: Option<T>): Option<T>
export function option<T>(option: Option<T>): Option<T> {
  return option
}

const notYet = 'has no effect yet in this release'

/** A remark for what this release reads but does not act upon. */
export const notImplemented = (instead: string) => (): string => `${notYet}: ${instead}`

/** The same, for all but those values that ask for nothing that is missing. */
export const notImplementedUnless =
  <T>(fine: (value: T) => boolean, instead: string) =>
  (value: T): string | undefined =>
    fine(value) ? undefined : `${notYet}: ${instead}`

/** The environment variable of an option: `NODEHUB_SERVER_ADDR` for `server-addr`. */
export const variableOf = (name: string): string =>
  `NODEHUB_${name.toUpperCase().replaceAll('-', '_')}`
