import { lastUsed } from '../../base/last-used.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'

export type BalanceMode = 'round-robin' | 'priority' | 'consistent-hashing'

/**
 * How far an upstream can be counted on.
 *
 *   ready      its probes succeed, and requests are answered
 *   ejected    its probes succeed, but requests fail at it
 *   unready    it answers probes, and says that it is not ready
 *   silent     it answers neither requests nor a probe, but not yet for long enough to be `gone`
 *   gone       probes have failed often enough, or none has succeeded yet
 */
export type Standing = 'ready' | 'ejected' | 'unready' | 'silent' | 'gone'

/** An upstream as far as choosing goes. */
export interface Candidate {
  readonly origin: string
  readonly standing: Standing
  /** From 0, just back, to 1: the share of its load that it takes by now. */
  readonly warmth: number
}

/** Who asks for what, as far as choosing goes. */
export type Asker = Pick<Exchange, 'identity' | 'component' | 'headers' | 'info'>

/**
 * The upstreams in the order in which this request is to ask them, without those that are gone:
 * first the ready ones, then the ejected, the unready and the silent. The same asker is given the
 * same order as long as nothing changes about the upstreams. When one comes back, those who prefer
 * it return to it one by one as it warms up.
 */
export type Balancer = <C extends Candidate>(asker: Asker, all: readonly C[]) => readonly C[]

export function balancer(mode: BalanceMode): Balancer {
  const { keyOf, prefer } = preferences[mode]()
  return (asker, all) => {
    const key = keyOf(asker)
    const preferred = prefer(key, all)
    if (preferred.length === 1 && preferred[0]?.standing === 'ready') return preferred
    const standing = (wanted: Standing) => preferred.filter((one) => one.standing === wanted)
    const ready = standing('ready')
    const waits = (one: Candidate): boolean => share(`${key} ${one.origin}`) >= one.warmth
    return [
      ...ready.filter((one) => !waits(one)),
      ...ready.filter(waits),
      ...standing('ejected'),
      ...standing('unready'),
      ...standing('silent'),
    ]
  }
}

/** The order that a mode prefers when all upstreams are ready. */
interface Preference {
  readonly keyOf: (asker: Asker) => string
  readonly prefer: <C extends Candidate>(key: string, all: readonly C[]) => readonly C[]
}

const componentKey = ({ identity, component }: Asker): string => `${identity} ${component}`

const preferences: Readonly<Record<BalanceMode, () => Preference>> = {
  priority: () => ({ keyOf: componentKey, prefer: (_key, all) => all }),
  'round-robin': () => ({ keyOf: componentKey, prefer: homes() }),
  // yurthub's key, but for the query: a list and the watch that continues it differ in nothing
  // else.
  'consistent-hashing': () => ({
    keyOf: ({ headers, info }) => `${headers.get('user-agent') ?? ''} ${info.path}`,
    prefer: byHash,
  }),
}

/** How many components are remembered. One that is forgotten is given a home anew. */
const mostHomes = 1_024

/**
 * Gives each component a home when it first asks: the upstream that is home to the fewest. The
 * others follow in an order of its own.
 */
function homes(): Preference['prefer'] {
  const known = lastUsed<string, string>(mostHomes)
  const settle = (all: readonly Candidate[]): string | undefined => {
    const settled = new Map(all.map(({ origin }) => [origin, 0]))
    for (const origin of known.values()) {
      const count = settled.get(origin)
      if (count !== undefined) settled.set(origin, count + 1)
    }
    const fewest = Math.min(...settled.values())
    return all.find(({ origin }) => settled.get(origin) === fewest)?.origin
  }
  return (key, all) => {
    const rest = byHash(key, all)
    const last = known.get(key)
    const home = all.some(({ origin }) => origin === last) ? last : settle(all)
    if (home === undefined) return rest
    known.set(key, home)
    return [...rest].sort((a, b) => Number(b.origin === home) - Number(a.origin === home))
  }
}

/**
 * Rendezvous hashing: when an upstream comes or goes, keys that prefer another keep their order.
 */
function byHash<C extends Candidate>(key: string, all: readonly C[]): readonly C[] {
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
