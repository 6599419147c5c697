import type { ValueType } from './value.ts'

/** Headings of the help text, in its order. */
export const groups = [
  'API servers',
  'Credentials',
  'Listeners',
  'Webhooks',
  'Leader election',
  'Pools',
  'Certificates of hubs',
  'Node',
  'Cache',
  'Filters',
  'Operation',
  'Accepted from yurthub, without effect here',
  'Accepted from earlier releases, without effect',
] as const

export type Group = (typeof groups)[number]

/** Whether it is a heading of flags without effect. */
export const isAcceptedOnly = (group: string | undefined): boolean =>
  group?.startsWith('Accepted') === true

/**
 * One flag. For the commands that run it is a setting: an environment variable and a key of the
 * configuration file as well, with one name.
 */
export interface Option<T, Live = boolean> {
  readonly type: ValueType<T, unknown>
  /** Absent: the command's flags stand under no headings. */
  readonly group?: Group
  readonly help: string
  readonly default: NoInfer<T>
  /** The default in help texts, if the value itself would be unclear. */
  readonly defaultShown?: string
  /** A file that must be readable for the configuration to be valid. */
  readonly file?: true
  /** A letter that stands for the name. */
  readonly short?: string
  /** Other names that are accepted, and shown nowhere. */
  readonly aliases?: readonly string[]
  /** Never printed. */
  readonly secret?: true
  /**
   * Takes effect while the hub runs, if the file of --config changes. The type divides the
   * configuration by this mark.
   */
  readonly live?: Live
  /** A warning for this value: it has no effect, or is mapped to another. */
  warningFor?(value: NoInfer<T>): string | undefined
}

/** The settings of one command, by flag name. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>

/** The values of a table's settings. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never
}

/** An option as it is declared: without a default it has that of its type. */
type Declared<T, Absent, Live> = Omit<Option<T>, 'type' | 'default' | 'live'> & {
  readonly type: ValueType<T, Absent>
  readonly live?: Live
}

/** The compiler infers the type of the value, and whether the option is live. */
export function option<T, Live extends boolean = false>(
  declared: Declared<T, unknown, Live> & { readonly default: NoInfer<T> },
): Option<T, Live>
export function option<T, Absent, Live extends boolean = false>(
  declared: Declared<T, Absent, Live>,
): Option<T | Absent, Live>
export function option(declared: Declared<unknown, unknown, boolean>): Option<unknown> {
  return { default: declared.type.absent, ...declared }
}

/** The options of a table, under a heading. */
export const under = <Table extends object>(group: Group, table: Table): Table =>
  Object.fromEntries(Object.entries(table).map(([name, one]) => [name, { ...one, group }])) as Table

/** A warning for an option that this release does not implement. */
export const notImplemented = (instead: string): string =>
  `has no effect yet in this release: ${instead}`

/** The name under which the table has a setting that may be called by an alias. */
export const nameIn = (options: OptionTable, called: string): string | undefined =>
  Object.hasOwn(options, called)
    ? called
    : Object.keys(options).find(
        (name) => options[name]?.short === called || options[name]?.aliases?.includes(called),
      )

/** A default as an operator would write it; '' if there is none. */
export function defaultOf({ default: value, defaultShown }: Option<unknown>): string {
  if (defaultShown !== undefined) return defaultShown
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

/** The environment variable of an option: `NODEHUB_SERVER_ADDR` for `server-addr`. */
export const variableOf = (name: string): string =>
  `NODEHUB_${name.toUpperCase().replaceAll('-', '_')}`
