import { costOf, each, residentMegabytes } from '../measure/cost.ts'
import { sumOf, type Metric } from '../measure/row.ts'
import { isOfFew, type RunningPeer } from '../peers/peer.ts'
import { bigListPath, seedBigList } from '../upstream/big-list.ts'
import { json, passed, recorded } from './callers.ts'
import { listBesideOthers, othersAt } from './list-beside-others.ts'
import type { Scenario, Setting } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'time', title: 'ms', digits: 0, against: 'direct' },
  { key: 'added', title: 'added MB', digits: 0, aims: [{ most: 40 }] },
  { key: 'others', title: 'others p99 ms', digits: 1, against: 'direct' },
  { key: 'cpu', title: 'cpu ms', digits: 0, against: 'haproxy-http' },
]

const headers = { ...recorded, Accept: json }
const otherHeaders = { ...passed, Accept: json }

/** What was resident before the first such list. */
const before = new Map<string, number>()

/** A list of 50 MB repeatedly, beside other clients that get one pod. */
export const bigList = (count: number): Scenario => ({
  name: 'list-big',
  title: `LIST ${Math.round(count / 4)} MB in JSON, as a kubelet; two other clients GET meanwhile`,
  needs: 'online',
  metrics,
  takes: isOfFew,
  async prime(peer, setting) {
    await seedBigList(setting.admin, count)
    const resident = residentMegabytes(peer.processId)
    if (resident !== undefined) before.set(peer.name, resident)
    await sizeOf(peer, setting, count)
  },
  async measure(peer, setting) {
    const list = { path: bigListPath, headers, bytes: await sizeOf(peer, setting, count) }
    const others = await othersAt(peer, setting, otherHeaders)
    const { result, cost } = await costOf(peer.processId, () =>
      listBesideOthers(setting, list, others),
    )
    return {
      figures: {
        time: result.lists.p50Ms,
        added: more(cost.peakMegabytes, before.get(peer.name)),
        others: result.others.p99Ms,
        cpu: each(cost.cpuSeconds, result.lists.answers / 1000),
      },
      failures: sumOf([result.others.failures, result.lists.failures]),
      loadShare: result.lists.loadShare,
    }
  },
})

/** How long the whole list is. Throws where it has not all its items. */
async function sizeOf(
  { name, target }: RunningPeer,
  { load }: Setting,
  count: number,
): Promise<number> {
  const { status, bytes, items } = await load.run('countItems', {
    target,
    path: bigListPath,
    headers,
  })
  if (items !== count)
    throw new Error(`${name}: a list of ${items} instead of ${count}, status ${status}`)
  return bytes
}

const more = (now: number | undefined, before: number | undefined): number | undefined =>
  now === undefined || before === undefined ? undefined : now - before
