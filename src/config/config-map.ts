import { filterNames } from './filter-names.ts'

/** Settings of the cluster for all of its hubs, in addition to their flags. */
export interface ClusterSettings {
  /** Additional components of a filter, by its name. */
  readonly components: ReadonlyMap<string, ReadonlySet<string>>
  /** Additional components whose answers are recorded; `*` is all. */
  readonly cacheAgents: ReadonlySet<string>
}

/** The data of a ConfigMap, unvalidated. */
export interface ConfigMapData {
  readonly data: Readonly<Record<string, unknown>>
  readonly binaryData: Readonly<Record<string, unknown>>
}

/** The settings and the ignored keys; or the mistakes. */
export type ReadConfigMap =
  | { readonly settings: ClusterSettings; readonly ignored: readonly string[] }
  | { readonly mistakes: readonly string[] }

const agentsKey = 'cache_agents'

/** The prefix of filters' keys before yurthub 1.5. */
const legacyPrefix = 'filter_'

/** More than a person writes, and little memory. */
const longestValue = 4_096
const mostMistakes = 5

/** A program's name in a User-Agent. */
const component = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/**
 * Parses the hubs' ConfigMap, which is yurthub's (pkg/yurthub/configuration/manager.go): a filter's
 * name lists its additional components, `cache_agents` the components whose answers are recorded
 * too, separated by commas. One invalid value makes all of it unusable. `others` are filters
 * besides the built-in ones. Unknown keys are never invalid: a filter with that name may be loaded
 * later.
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

/** A filter's own name may begin with the prefix. */
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
  // Component names are compared in lower case.
  return { names: new Set(names.map((name) => name.toLowerCase())) }
}
