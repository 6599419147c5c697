import { filterNames } from './filter-names.ts'

/** What the cluster says to all of its hubs, beside their own flags. */
export interface ClusterSettings {
  /** Components that a filter acts for besides those it is made for, by the filter's name. */
  readonly components: ReadonlyMap<string, ReadonlySet<string>>
  /**
   * Components whose answers are recorded besides those of `--cache-components`; `*` stands for
   * all.
   */
  readonly cacheAgents: ReadonlySet<string>
}

/** The parts of a ConfigMap, as they came. */
export interface ConfigMapData {
  readonly data: Readonly<Record<string, unknown>>
  readonly binaryData: Readonly<Record<string, unknown>>
}

/** What is in it, with the keys that mean nothing here; or what is wrong with it. */
export type ReadConfigMap =
  | { readonly settings: ClusterSettings; readonly ignored: readonly string[] }
  | { readonly mistakes: readonly string[] }

const agentsKey = 'cache_agents'

/** Before yurthub 1.5 the keys of filters began so. */
const legacyPrefix = 'filter_'

/** More than anybody writes by hand, and little to keep in mind. */
const longestValue = 4_096
const mostMistakes = 5

/** A program's name as it stands in a User-Agent. */
const component = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/**
 * Reads the hubs' ConfigMap, which is yurthub's (pkg/yurthub/configuration/manager.go): under the
 * name of a filter the components that it acts for besides its own, under `cache_agents` those
 * whose answers are recorded too, with commas between them. Either all that is known of it can be
 * used, or nothing is. `others` are filters besides the built-in ones; what other keys say is kept
 * for a filter that may come by that name, and never wrong.
 */
export function readConfigMap(
  { data, binaryData }: ConfigMapData,
  others: readonly string[],
): ReadConfigMap {
  const known = new Set<string>([...filterNames, ...others])
  const components = new Map<string, ReadonlySet<string>>()
  const mistakes: string[] = []
  const ignored: string[] = []
  let cacheAgents: ReadonlySet<string> = new Set()
  for (const key of Object.keys(binaryData)) {
    if (isKnown(key, known)) mistakes.push(`${key}: is binary data`)
    else ignored.push(key)
  }
  for (const [key, value] of Object.entries(data)) {
    const isIgnored = !isKnown(key, known)
    if (isIgnored) ignored.push(key)
    const read = componentsIn(value, key === agentsKey)
    if ('wrong' in read) {
      if (!isIgnored) mistakes.push(`${key}: ${read.wrong}`)
    } else if (key === agentsKey) cacheAgents = read.names
    else {
      const filter = filterOf(key, known)
      components.set(filter, new Set([...(components.get(filter) ?? []), ...read.names]))
    }
  }
  if (mistakes.length > 0) return { mistakes: mistakes.slice(0, mostMistakes) }
  return { settings: { components, cacheAgents }, ignored: ignored.toSorted() }
}

const isKnown = (key: string, filters: ReadonlySet<string>): boolean =>
  key === agentsKey || filters.has(filterOf(key, filters))

/** A filter may be called like that itself. */
const filterOf = (key: string, filters: ReadonlySet<string>): string =>
  !filters.has(key) && key.startsWith(legacyPrefix) ? key.slice(legacyPrefix.length) : key

function componentsIn(
  value: unknown,
  all: boolean,
): { readonly names: ReadonlySet<string> } | { readonly wrong: string } {
  if (typeof value !== 'string') return { wrong: 'is no text' }
  if (value.length > longestValue) {
    return { wrong: `has ${value.length} characters, of which ${longestValue} are taken` }
  }
  const names = value.split(',').flatMap((part) => part.trim() || [])
  const bad = names.find((name) => !component.test(name) && !(all && name === '*'))
  if (bad !== undefined) {
    return {
      wrong: `has ${JSON.stringify(bad.slice(0, 64))}, which is not the name of a component`,
    }
  }
  // As components are told apart, whatever they are written like.
  return { names: new Set(names.map((name) => name.toLowerCase())) }
}
