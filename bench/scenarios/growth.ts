import { fittedLine } from '../measure/growth.ts'
import { costOf, each } from '../measure/cost.ts'
import { sumOf, type Metric, type Sample } from '../measure/row.ts'
import type { Target } from '../load/target.ts'
import { isHub, type RunningPeer } from '../peers/peer.ts'
import { listSlack } from '../load/read-load.ts'
import { configMapPath, seedConfigMaps } from '../upstream/config-maps.ts'
import { fewPath, seedMany, seedServices, servicePaths, servicesOf } from '../upstream/services.ts'
import { json } from './callers.ts'
import type { Scenario, Setting } from './scenario.ts'
import type { Sizes } from './sizes.ts'

/** A figure that is taken at each size, and that a line is fitted through. */
interface Curve {
  readonly key: 'cpu' | 'time'
  readonly title: string
}

interface Growth {
  readonly name: string
  readonly title: string
  /** What grows, in the plural. */
  readonly of: string
  readonly sizes: readonly number[]
  readonly curves: readonly Curve[]
  /** Whether the API server itself is measured beside. */
  readonly withDirect: boolean
  readonly prime: (peer: RunningPeer, setting: Setting) => Promise<void>
  /** All sizes, in one round. */
  readonly measure: (peer: RunningPeer, setting: Setting) => Promise<readonly SizeSample[]>
}

interface SizeSample extends Partial<Record<Curve['key'], number | undefined>> {
  readonly size: number
  readonly failures: Readonly<Record<string, number>>
  readonly loadShare: number
}

/** Linear is 1; what is above is more than two cores' noise. */
const slopeAim = 1.15

const pointKey = (curve: string, size: number): string => `${curve}@${size}`

/** A row whose figures are one thing at several sizes, and the slope of the line through them. */
function growth({ of, sizes, curves, withDirect, measure, ...row }: Growth): Scenario {
  const metrics = curves.flatMap(({ key, title }): readonly Metric[] => [
    ...sizes.map((size) => ({
      key: pointKey(key, size),
      title: `${title}, ${size.toLocaleString('en-US')} ${of}`,
      digits: 2,
      point: { of: title, size },
    })),
    { key: `${key}-slope`, title: `${title}, slope`, digits: 2, aims: [{ most: slopeAim }] },
  ])
  return {
    ...row,
    needs: 'online',
    metrics,
    takes: (peer) => isHub(peer) || (withDirect && peer.name === 'direct'),
    async measure(peer, setting): Promise<Sample> {
      const taken = await measure(peer, setting)
      const figures = curves.flatMap(({ key }) => {
        const points = taken.map((sample) => ({ size: sample.size, value: sample[key] }))
        const known = points.filter(
          (point): point is { size: number; value: number } => point.value !== undefined,
        )
        return [
          ...points.map(({ size, value }): [string, number | undefined] => [
            pointKey(key, size),
            value,
          ]),
          [`${key}-slope`, fittedLine(known)?.slope] as const,
        ]
      })
      return {
        figures: Object.fromEntries(figures),
        failures: sumOf(taken.map(({ failures }) => failures)),
        loadShare: Math.max(...taken.map(({ loadShare }) => loadShare)),
      }
    },
  }
}

const both: readonly Curve[] = [
  { key: 'cpu', title: 'cpu ms' },
  { key: 'time', title: 'ms' },
]

/** Where a peer is measured: a hub at one of its own, which holds nothing else. */
async function targetOf(
  peer: RunningPeer,
  { hubs, admin }: Setting,
): Promise<{ readonly target: Target; readonly processId?: number }> {
  return isHub(peer) ? (await hubs.recordingAll(peer)).peer : { target: admin }
}

/** As a program whose answers the hub records. */
const headersOf = (component: string) => ({ 'User-Agent': `${component}/v1`, Accept: json })

/** The same GET over and over on one connection, for a share of a measurement. */
async function readsOf(
  peer: RunningPeer,
  setting: Setting,
  size: number,
  path: string,
): Promise<SizeSample> {
  const { load, seconds } = setting
  const { target, processId } = await targetOf(peer, setting)
  const headers = headersOf('growth')
  // Recorded by the first, answered as later ones are by the second.
  await load.run('sizesOf', { target, paths: [path], headers })
  const bytes = await load.run('sizesOf', { target, paths: [path], headers })
  const job = { target, headers, paths: [path], bytes, slack: listSlack, connections: 1 }
  const { result, cost } = await costOf(processId, () =>
    load.run('read', { ...job, seconds: seconds / 2 }),
  )
  return {
    size,
    cpu: each(cost.cpuSeconds, result.answers / 1000),
    time: result.p50Ms,
    failures: result.failures,
    loadShare: result.loadShare,
  }
}

/** One size after the other. */
async function inTurn(
  sizes: readonly number[],
  measure: (size: number) => Promise<SizeSample>,
): Promise<SizeSample[]> {
  const taken: SizeSample[] = []
  for (const size of sizes) taken.push(await measure(size))
  return taken
}

const growthObjects = (sizes: readonly number[]): Scenario =>
  growth({
    name: 'growth-objects',
    title: `LIST of ${range(sizes)} services in JSON, recorded`,
    of: 'objects',
    sizes,
    curves: both,
    withDirect: true,
    async prime(_peer, { admin }) {
      for (const size of sizes) await seedMany(admin, size)
    },
    measure: (peer, setting) =>
      inTurn(sizes, (size) => readsOf(peer, setting, size, `${servicesOf(size)}resourceVersion=0`)),
  })

const growthBytes = (sizes: readonly number[]): Scenario =>
  growth({
    name: 'growth-bytes',
    title: `GET of a config map of ${range(sizes)} bytes, recorded`,
    of: 'bytes',
    sizes,
    curves: both,
    withDirect: true,
    prime: (_peer, { admin }) => seedConfigMaps(admin, sizes),
    measure: (peer, setting) =>
      inTurn(sizes, (size) => readsOf(peer, setting, size, configMapPath(size))),
  })

/** So few that two thousand watchers take them in time. */
const eventsPerSecond = 5

/** Stamps are counted over all rounds, so that none is taken for another's. */
let nextStamp = 0

const growthWatchers = (sizes: readonly number[]): Scenario =>
  growth({
    name: 'growth-watchers',
    title: `${range(sizes)} watches of 20 services in JSON: what each event takes`,
    of: 'watchers',
    sizes,
    curves: [{ key: 'cpu', title: 'cpu ms an event' }],
    withDirect: false,
    prime: (_peer, { admin }) => seedServices(admin),
    measure: (peer, setting) => inTurn(sizes, (size) => eventsTo(peer, setting, size)),
  })

async function eventsTo(peer: RunningPeer, setting: Setting, size: number): Promise<SizeSample> {
  const { load, writer, admin, seconds } = setting
  const { target, processId } = await targetOf(peer, setting)
  const headers = headersOf('growth')
  const count = Math.ceil(seconds * eventsPerSecond)
  await load.run('fanOut', { target, path: fewPath, count: size, headers })
  const from = nextStamp
  nextStamp += count
  const { result, cost } = await costOf(processId, async () => {
    const job = { target: admin, paths: servicePaths, from, count, perSecond: eventsPerSecond }
    const written = await writer.run('write', job)
    const seen = await load.run('fanOutSeen', { from, to: from + count, patienceMs: 30_000 })
    return { ...seen, failures: sumOf([written.failures, seen.failures]) }
  })
  return {
    size,
    cpu: each(cost.cpuSeconds, count / 1000),
    failures: result.failures,
    loadShare: result.loadShare,
  }
}

const componentWith = (count: number): string => `filtered-by-${count}`

/** A module of filters, each of which edits a service for the programs that have so many. */
export function filtersFor(counts: readonly number[]): string {
  const components = Array.from({ length: Math.max(...counts) }, (_, at) =>
    counts.filter((count) => count > at).map(componentWith),
  )
  return `export const filters = ${JSON.stringify(components)}.map((components, at) => ({
  name: \`growth-\${at}\`,
  rules: [{ components, group: '', resources: ['services'], verbs: ['get', 'list', 'watch'] }],
  onError: 'pass',
  needs: [],
  create: () => (service) =>
    service.value(['spec', 'selector', 'app']) === undefined
      ? 'leave'
      : [{ op: 'set', path: ['metadata', 'annotations', \`bench.nodehub/\${at}\`], value: 'seen' }],
}))
`
}

const growthFilters = (sizes: readonly number[], many: number): Scenario =>
  growth({
    name: 'growth-filters',
    title: `LIST of ${many.toLocaleString('en-US')} services in JSON through ${range(sizes)} filters, each object for the first time`,
    of: 'filters',
    sizes,
    curves: both,
    withDirect: false,
    prime: (_peer, { admin }) =>
      Promise.all([seedMany(admin, many), seedServices(admin)]).then(done),
    async measure(peer, { load, hubs, warmLists }) {
      await using own = await hubs.filteringBy(peer, filtersFor(sizes))
      const { target, processId } = own.peer
      const list = (path: string, component: string) =>
        load.run('countItems', { target, path, headers: headersOf(component) })
      for (let at = 0; at < warmLists; at += 1)
        for (const count of sizes) await list(`${fewPath}resourceVersion=0`, componentWith(count))
      // Recorded before: it is the filters that are to be measured.
      const path = `${servicesOf(many)}resourceVersion=0`
      const { items } = await list(path, 'unfiltered')
      return await inTurn(sizes, async (size) => {
        const { result, cost } = await costOf(processId, () => list(path, componentWith(size)))
        const failures = result.items === items ? {} : { [`${result.items} items for ${items}`]: 1 }
        return {
          size,
          cpu: each(cost.cpuSeconds, 1 / 1000),
          time: result.ms,
          failures,
          loadShare: 0,
        }
      })
    },
  })

const done = (): void => undefined

const range = (sizes: readonly number[]): string =>
  [Math.min(...sizes), Math.max(...sizes)].map((size) => size.toLocaleString('en-US')).join(' to ')

export const growthRows = ({ growth: sizes, many }: Sizes): readonly Scenario[] => [
  growthObjects(sizes.objects),
  growthBytes(sizes.bytes),
  growthWatchers(sizes.watchers),
  growthFilters(sizes.filters, many),
]
