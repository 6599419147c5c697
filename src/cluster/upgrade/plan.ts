import { newestSchema } from '../../hub/store/sqlite/schema.ts'
import { ownVersion } from '../../base/own-version.ts'
import type { Quantity } from '../../config/value.ts'
import { hubLabel } from '../../api/kube/hub-report.ts'
import { textAt } from '../../api/kube/json-at.ts'
import type { FleetNode } from './fleet.ts'
import type { Target } from './gate.ts'

export interface UpgradeOptions {
  /** How many nodes are done after each wave; the last wave has the rest. */
  readonly waves: readonly Quantity[]
  /** A label whose values each make a wave, in their order; in place of `waves`. */
  readonly waveLabel: string | undefined
  /** Only these nodes; empty: all. */
  readonly nodes: readonly string[]
}

/** The forecast for the caches of the nodes, printed before anything is changed. */
export interface CacheForecast {
  readonly kept: boolean
  readonly text: string
}

export interface UpgradePlan {
  /** Names of nodes, those that are done already left out. */
  readonly waves: readonly (readonly string[])[]
  readonly done: readonly string[]
  /** Nodes that are left for a later run, with the reason. */
  readonly later: readonly { readonly node: string; readonly why: string }[]
  readonly cache: CacheForecast
}

/** Plans an upgrade of a fleet; by the same options it has the same waves again. */
export function planUpgrade(
  fleet: ReadonlyMap<string, FleetNode>,
  target: Target,
  options: UpgradeOptions,
): UpgradePlan {
  const meant = [...fleet.values()].filter(
    ({ name }) => options.nodes.length === 0 || options.nodes.includes(name),
  )
  const isDone = (node: FleetNode): boolean =>
    node.pod?.image === target.image && node.baseline === undefined
  const later = [
    ...options.nodes
      .filter((name) => !fleet.has(name))
      .map((node) => ({ node, why: 'has no hub of an installer' })),
    ...meant.flatMap((node) => {
      const why = isDone(node) ? undefined : whyLater(node)
      return why === undefined ? [] : [{ node: node.name, why }]
    }),
  ]
  const isLater = new Set(later.map(({ node }) => node))
  const waves = wavesOf(meant, options)
    .map((wave) =>
      wave.filter((node) => !isDone(node) && !isLater.has(node.name)).map(({ name }) => name),
    )
    .filter((wave) => wave.length > 0)
  const changed = meant.filter(({ name }) => waves.some((wave) => wave.includes(name)))
  return {
    waves,
    done: meant.filter(isDone).map(({ name }) => name),
    later,
    cache: cacheForecast(changed, target),
  }
}

function whyLater({ isReady, pod, baseline, labels, installed }: FleetNode): string | undefined {
  // A node that an earlier run has changed goes through the gate in any state.
  if (baseline !== undefined) return undefined
  if (!isReady) return 'is not Ready, which may be for want of a link'
  if (textAt(labels, hubLabel) === 'adopt') {
    if (installed?.state !== 'Installed') return 'has not been adopted: see its nodehub.io/install'
    if (installed.image === '') return 'has a hub of systemd: upgrade its package'
  }
  return pod === undefined ? 'has no installer' : undefined
}

function wavesOf(
  nodes: readonly FleetNode[],
  { waves, waveLabel }: UpgradeOptions,
): readonly (readonly FleetNode[])[] {
  if (waveLabel !== undefined) {
    const groups = Map.groupBy(nodes, ({ labels }) => textAt(labels, waveLabel))
    // Those without the label come last.
    return [...groups]
      .toSorted(([one], [other]) => (one === '' ? 1 : other === '' ? -1 : one < other ? -1 : 1))
      .map(([, group]) => group)
  }
  const ends = waves.map((wave) => countOf(wave, nodes.length))
  return [...ends, nodes.length].map((end, at) => nodes.slice(ends[at - 1] ?? 0, end))
}

/** At least one, and no more than there are. */
export const countOf = (quantity: Quantity, all: number): number =>
  Math.min(
    all,
    Math.max(1, 'nodes' in quantity ? quantity.nodes : Math.floor((quantity.percent * all) / 100)),
  )

/** The schema of the cache that each release migrates to. */
export const schemaOfRelease: Readonly<Record<string, number>> = {
  '0.2.0': 6,
}

/**
 * The forecast for the caches: a release reads those of earlier schemas and refuses to start on a
 * later one (docs/upgrade-without-a-gap.md).
 */
function cacheForecast(nodes: readonly FleetNode[], { version }: Target): CacheForecast {
  const schema = version === ownVersion() ? newestSchema : schemaOfRelease[version]
  const versionOf = ({ report, installed }: FleetNode): string =>
    report?.version ?? installed?.version ?? ''
  const lost = nodes.filter((node) => {
    const { report } = node
    if (schema !== undefined && report !== undefined) return report.schema > schema
    return versionOf(node) === '' ? false : isEarlier(version, versionOf(node))
  })
  if (lost.length === 0) {
    const text =
      schema === undefined
        ? 'kept: each hub migrates its own'
        : `kept: ${version} reads every schema up to ${schema}, which is that of no node exceeded`
    return { kept: true, text }
  }
  const names = listed(lost.map(({ name }) => name))
  return {
    kept: false,
    text:
      schema === undefined
        ? `not known to be kept: ${version} is earlier than the hubs of ${names}, and this release does not know its schema`
        : `not kept: ${version} knows schemas up to ${schema}, and the hubs of ${names} have a later one, with which it does not start`,
  }
}

const mostNames = 10

/** Names for a line of text. */
export const listed = (names: readonly string[]): string =>
  names.length > mostNames
    ? `${names.slice(0, mostNames).join(', ')} and ${names.length - mostNames} more`
    : names.join(', ')

/** Compares by the numbers of releases. */
function isEarlier(one: string, other: string): boolean {
  const parts = (version: string): number[] => version.split(/[.-]/).map((part) => Number(part))
  const [a, b] = [parts(one), parts(other)]
  for (let at = 0; at < 3; at++) {
    if ((a[at] ?? 0) !== (b[at] ?? 0)) return (a[at] ?? 0) < (b[at] ?? 0)
  }
  return false
}
