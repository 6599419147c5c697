import type { Metric, Sample } from '../measure/row.ts'
import { isHub, type RunningPeer } from '../peers/peer.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, recorded } from './callers.ts'
import type { Outage } from '../upstream/upstream.ts'
import type { Scenario, Setting } from './scenario.ts'

/** `first`: how long the first answers may take. */
const metricsWith = (first: number): readonly Metric[] => [
  { key: 'get', title: 'first GET ms', digits: 0, aims: [{ most: first }] },
  { key: 'list', title: 'first LIST ms', digits: 0, aims: [{ most: first }] },
  { key: 'told', title: 'known offline after ms', digits: 0 },
  { key: 'offlineGet', title: 'GET then ms', digits: 1, aims: [{ most: 20 }] },
  { key: 'back', title: 'online again after ms', digits: 0 },
]

const headers = { ...recorded, Accept: json }
const getPathOf = ([pod]: readonly string[]): string => `${pod}?resourceVersion=0`
const listPath = `${podsOfNode}&resourceVersion=0`

/** How many times one asks once the peer knows that the API server is gone; the slowest counts. */
const offlineAnswers = 20

/**
 * What clients see from the moment in which the API server goes until it is back, of what was
 * recorded before.
 */
function outageRow(
  row: Pick<Scenario, 'name' | 'title'>,
  first: number,
  lose: (outage: Outage) => Promise<void>,
  giveBack: (outage: Outage) => Promise<void>,
): Scenario {
  return {
    ...row,
    needs: 'outage',
    metrics: metricsWith(first),
    takes: isHub,
    async prime(peer, { load, pods }) {
      for (const path of [getPathOf(pods), listPath])
        await load.run('fetchOnce', { target: peer.target, path, headers })
    },
    async measure(peer, setting) {
      const { outage, pods } = setting
      const getPath = getPathOf(pods)
      if (outage === undefined) throw new Error('the API server cannot be taken away')
      await lose(outage)
      const lostAt = performance.now()
      try {
        const told = peer.whenOffline?.().then(() => performance.now() - lostAt)
        // It may have to wait in vain, beside what fails before.
        told?.catch(() => undefined)
        // At once and side by side, as the programs of a node would.
        const [get, list] = await Promise.all([
          timed(peer, setting.load, getPath),
          timed(peer, setting.writer, listPath),
        ])
        const toldMs = await told
        const later: Timed[] = []
        while (later.length < offlineAnswers) later.push(await timed(peer, setting.load, getPath))
        await giveBack(outage)
        const backAt = performance.now()
        await peer.whenOnline?.()
        return {
          figures: {
            get: get.ms,
            list: list.ms,
            told: toldMs,
            offlineGet: Math.max(...later.map(({ ms }) => ms)),
            back: performance.now() - backAt,
          },
          failures: failuresOf([get, list, ...later]),
          loadShare: 0,
        } satisfies Sample
      } catch (error) {
        await giveBack(outage)
        throw error
      }
    },
  }
}

interface Timed {
  readonly status: number
  readonly ms: number
}

async function timed({ target }: RunningPeer, load: Setting['load'], path: string): Promise<Timed> {
  const { status, ms } = await load.run('fetchOnce', { target, path, headers })
  return { status, ms }
}

const failuresOf = (all: readonly Timed[]): Record<string, number> => {
  const failed = all.filter(({ status }) => status !== 200)
  return Object.fromEntries(
    [...Map.groupBy(failed, ({ status }) => `status ${status}`)].map(([what, each]) => [
      what,
      each.length,
    ]),
  )
}

export const frozen = outageRow(
  { name: 'outage-frozen', title: 'the API server stops answering (SIGSTOP) and goes on' },
  2000,
  (outage) => outage.freeze(),
  (outage) => outage.thaw(),
)

export const killed = outageRow(
  { name: 'outage-killed', title: 'the API server is killed and started again' },
  100,
  (outage) => outage.kill(),
  (outage) => outage.start(),
)
