import { setTimeout as sleep } from 'node:timers/promises'
import type { ReadResult } from '../load/read-load.ts'
import { sumOf, type Metric, type Sample } from '../measure/row.ts'
import { median } from '../measure/statistics.ts'
import { isHub, type RunningPeer } from '../peers/peer.ts'
import { filteredPath, seedFiltered, warmCount, type FilteredKind } from '../upstream/filtered.ts'
import { json, protobuf } from './callers.ts'
import { listBesideOthers, othersAt } from './list-beside-others.ts'
import type { Scenario, Setting } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'plain', title: 'unfiltered ms', digits: 1 },
  { key: 'first', title: 'first ms', digits: 1 },
  { key: 'firstRatio', title: 'first : unfiltered', digits: 2, aims: [{ most: 1.5 }] },
  { key: 'again', title: 'again ms', digits: 1 },
  { key: 'ratio', title: 'again : unfiltered', digits: 2, aims: [{ most: 1.1 }] },
  { key: 'plainBeside', title: 'unfiltered beside others ms', digits: 1 },
  { key: 'againBeside', title: 'again beside others ms', digits: 1 },
  { key: 'servedPlain', title: 'others served an unfiltered list', digits: 1 },
  { key: 'served', title: 'others served a list again', digits: 1 },
  { key: 'othersPlain', title: 'others unfiltered p99 ms', digits: 1 },
  { key: 'others', title: 'others p99 ms', digits: 1 },
]

/** Lists of each kind that are measured with nothing beside them, in turn. */
const lists = 5

/** Which program a filter of the hub's own acts for. */
const filteredComponent: Readonly<Record<FilteredKind, string>> = {
  endpointslices: 'kube-proxy',
  pods: 'kubelet',
}
/** Recorded as well, and no filter acts for it. */
const plainComponent = 'flanneld'

const as = (component: string, mediaType: string) => ({
  'User-Agent': `${component}/v1.36.0`,
  Accept: mediaType,
})

/** How long a filter may take to learn what it needs to know. */
const patienceMs = 30_000

function filteredLists(kind: FilteredKind, count: number, encoding: 'json' | 'protobuf'): Scenario {
  const mediaType = encoding === 'json' ? json : protobuf
  const filtered = as(filteredComponent[kind], mediaType)
  const plain = as(plainComponent, mediaType)
  const path = filteredPath(kind, count)
  const warmPath = filteredPath(kind, warmCount)
  return {
    name: `filtered-list-${kind}-${count}-${encoding}`,
    title: `LIST ${count.toLocaleString('en')} ${kind} in ${encoding}, through a filter and without, alone and while two other clients GET`,
    needs: 'online',
    metrics,
    takes: isHub,
    async prime(_peer, { admin }) {
      await seedFiltered(admin, kind, warmCount)
      await seedFiltered(admin, kind, count)
    },
    async measure(of, setting) {
      await using own = await setting.hubs.filtering(of)
      const { peer } = own
      await warm(peer, setting)
      // Recorded before: it is the filter that is to be measured.
      const whole = await itemsAt(peer, setting, path, plain)
      const first = await itemsAt(peer, setting, path, filtered)
      const alone = { plain: [] as number[], again: [] as number[] }
      for (let at = 0; at < lists; at += 1) {
        alone.plain.push((await itemsAt(peer, setting, path, plain)).ms)
        alone.again.push((await itemsAt(peer, setting, path, filtered)).ms)
      }
      const [unfiltered, again] = [median(alone.plain), median(alone.again)]
      const without = await listed(peer, setting, plain, whole.bytes)
      const through = await listed(peer, setting, filtered, first.bytes)
      return {
        figures: {
          plain: unfiltered,
          first: first.ms,
          again,
          firstRatio: first.ms / unfiltered,
          ratio: again / unfiltered,
          plainBeside: without.lists.p50Ms,
          againBeside: through.lists.p50Ms,
          servedPlain: without.others.answers / without.lists.answers,
          served: through.others.answers / through.lists.answers,
          othersPlain: without.others.p99Ms,
          others: through.others.p99Ms,
        },
        failures: sumOf(
          [without, through].flatMap((each) => [each.others.failures, each.lists.failures]),
        ),
        loadShare: Math.max(without.lists.loadShare, through.lists.loadShare),
      } satisfies Sample
    },
  }

  /**
   * Lets everything be compiled, and the filter learn what it needs: until then it shows what there
   * is.
   */
  async function warm(peer: RunningPeer, setting: Setting): Promise<void> {
    const until = performance.now() + patienceMs
    for (;;) {
      const without = await bodyAt(peer, setting, plain)
      if (!without.equals(await bodyAt(peer, setting, filtered))) break
      if (performance.now() > until)
        throw new Error(`the filter has not acted for ${patienceMs} ms`)
      await sleep(100)
    }
    for (let at = 0; at < setting.warmLists; at += 1) {
      await itemsAt(peer, setting, warmPath, plain)
      await itemsAt(peer, setting, warmPath, filtered)
    }
  }

  /** In protobuf a look may be as long as what is looked at. */
  async function bodyAt(
    { target }: RunningPeer,
    { load }: Setting,
    headers: Readonly<Record<string, string>>,
  ): Promise<Buffer> {
    return Buffer.from((await load.run('fetchOnce', { target, path: warmPath, headers })).body)
  }

  async function listed(
    peer: RunningPeer,
    setting: Setting,
    headers: Readonly<Record<string, string>>,
    bytes: number,
  ): Promise<{ lists: ReadResult; others: ReadResult }> {
    const others = await othersAt(peer, setting, as('bench', json))
    return await listBesideOthers(setting, { path, headers, bytes }, others)
  }
}

async function itemsAt(
  { target }: RunningPeer,
  { load }: Setting,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ bytes: number; items: number; ms: number }> {
  const { status, ...counted } = await load.run('countItems', { target, path, headers })
  if (status !== 200) throw new Error(`GET ${path}: status ${status}`)
  return counted
}

export const filteredListRows = (counts: readonly number[]): readonly Scenario[] =>
  (['endpointslices', 'pods'] as const).flatMap((kind) =>
    counts.flatMap((count) =>
      (['json', 'protobuf'] as const).map((encoding) => filteredLists(kind, count, encoding)),
    ),
  )
