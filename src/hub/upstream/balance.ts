import { lruCache } from '../../base/lru-cache.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'

export type BalanceMode = 'round-robin' | 'priority' | 'consistent-hashing'

/**
 * Whether and how late an upstream is tried:
 *
 * - ready: its probes succeed, and it answers requests
 * - ejected: its probes succeed, but requests fail at it (outlier detection); a connection to it
 *   broke, and no probe has found it ready since; or it refused the hub's own credentials lately
 * - unready: it answers probes, and reports that it is not ready
 * - unresponsive: a request and a probe went unanswered, but too few probes to be unhealthy
 * - unhealthy: enough probes have failed, or none has succeeded yet
 */
export type Availability = 'ready' | 'ejected' | 'unready' | 'unresponsive' | 'unhealthy'

/** The facts of an upstream that the load balancer needs. */
export interface LoadBalancedHost {
  readonly origin: string
  readonly availability: Availability
  /** The share of its load that it takes: from 0, just recovered, to 1. */
  readonly slowStartWeight: number
}

/** The facts of a request that the load balancer needs. */
export type LoadBalancerContext = Pick<Exchange, 'identity' | 'component' | 'headers' | 'info'>

/**
 * The upstreams in the order in which to try them for a request, without the unhealthy ones: the
 * ready first, then the ejected, the unready and the unresponsive. The order for one component is
 * stable while no upstream changes. Components that prefer an upstream that has recovered return to
 * it one by one during its slow start.
 */
export type Balancer = <C extends LoadBalancedHost>(
  asker: LoadBalancerContext,
  all: readonly C[],
) => readonly C[]

export function balancer(mode: BalanceMode): Balancer {
  const { keyOf, prefer } = preferences[mode]()
  return (asker, all) => {
    if (all.length === 1 && all[0]?.availability === 'ready') return all
    const key = keyOf(asker)
    const preferred = prefer(key, all)
    const withAvailability = (tier: Availability) =>
      preferred.filter((one) => one.availability === tier)
    const ready = withAvailability('ready')
    const waits = (one: LoadBalancedHost): boolean =>
      share(`${key} ${one.origin}`) >= one.slowStartWeight
    return [
      ...ready.filter((one) => !waits(one)),
      ...ready.filter(waits),
      ...withAvailability('ejected'),
      ...withAvailability('unready'),
      ...withAvailability('unresponsive'),
    ]
  }
}

/** The order of a mode when all upstreams are ready. */
interface Preference {
  readonly keyOf: (asker: LoadBalancerContext) => string
  readonly prefer: <C extends LoadBalancedHost>(key: string, all: readonly C[]) => readonly C[]
}

const componentKey = ({ identity, component }: LoadBalancerContext): string =>
  `${identity} ${component}`

const preferences: Readonly<Record<BalanceMode, () => Preference>> = {
  priority: () => ({ keyOf: componentKey, prefer: (_key, all) => all }),
  'round-robin': () => ({ keyOf: componentKey, prefer: stickyHosts() }),
  // yurthub's key, but for the query: a list and the watch that continues it differ in nothing
  // else.
  'consistent-hashing': () => ({
    keyOf: ({ headers, info }) => `${headers.get('user-agent') ?? ''} ${info.path}`,
    prefer: byHash,
  }),
}

/** How many components keep their upstream; beyond that the least recently used is reassigned. */
const mostAssigned = 1_024

/**
 * Assigns each component at its first request to the upstream with the fewest components. The
 * others follow by hash.
 */
function stickyHosts(): Preference['prefer'] {
  const assigned = lruCache<string, string>(mostAssigned)
  const leastAssigned = (all: readonly LoadBalancedHost[]): string | undefined => {
    const counts = new Map(all.map(({ origin }) => [origin, 0]))
    for (const origin of assigned.values()) {
      const count = counts.get(origin)
      if (count !== undefined) counts.set(origin, count + 1)
    }
    const fewest = Math.min(...counts.values())
    return all.find(({ origin }) => counts.get(origin) === fewest)?.origin
  }
  return (key, all) => {
    if (all.length < 2) return all
    const rest = byHash(key, all)
    const last = assigned.get(key)
    const first = all.some(({ origin }) => origin === last) ? last : leastAssigned(all)
    if (first === undefined) return rest
    assigned.set(key, first)
    return [...rest].sort((a, b) => Number(b.origin === first) - Number(a.origin === first))
  }
}

/**
 * Rendezvous hashing: when an upstream is added or removed, keys that prefer another keep their
 * order.
 */
function byHash<C extends LoadBalancedHost>(key: string, all: readonly C[]): readonly C[] {
  if (all.length < 2) return all
  return all
    .map((one) => ({ one, score: share(`${one.origin} ${key}`) }))
    .sort((a, b) => b.score - a.score)
    .map(({ one }) => one)
}

/** The text hashed to a number in [0, 1), evenly spread: FNV-1a, finished as MurmurHash3 is. */
function share(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
