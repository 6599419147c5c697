import type { ReadJob } from '../load/read-load.ts'
import { costOf, each } from '../measure/cost.ts'
import { aheadOf, type Aim, type Metric } from '../measure/row.ts'
import { isOffline, type RunningPeer } from '../peers/peer.ts'
import { json, passed, recorded } from './callers.ts'
import { warmSeconds, type Scenario, type Setting } from './scenario.ts'

const connections = 16

/** What a row of gets is to reach. */
interface GetAims {
  readonly p50?: readonly Aim[]
  readonly cpu: readonly Aim[]
  readonly besideMain?: readonly Aim[]
}

const metricsWith = ({ p50 = [], cpu, besideMain = [] }: GetAims): readonly Metric[] => [
  { key: 'rate', title: 'requests/s', digits: 0, against: 'direct', better: 'more' },
  { key: 'p50', title: 'p50 ms', digits: 2, against: 'direct', aims: p50 },
  { key: 'p99', title: 'p99 ms', digits: 2, against: 'direct' },
  { key: 'cpu', title: 'cpu s/1,000', digits: 3, against: 'http-proxy', aims: cpu },
  { key: 'besideMain', title: 'cpu of other threads %', digits: 1, aims: besideMain },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * GETs of all pods in turn. Each answer has to be as long as the one that the API server gave
 * before.
 */
function gets(
  row: Pick<Scenario, 'name' | 'title' | 'needs'>,
  caller: Readonly<Record<string, string>>,
  aims: GetAims,
): Scenario {
  const headers = { ...caller, Accept: json }
  let bytes: readonly number[] = []
  const job = (peer: RunningPeer, paths: readonly string[], seconds: number): ReadJob => ({
    target: peer.target,
    headers,
    paths,
    bytes,
    slack: 0,
    connections,
    seconds,
  })
  return {
    ...row,
    metrics: metricsWith(aims),
    ...(row.needs === 'offline' && { takes: isOffline }),
    async prime(peer: RunningPeer, setting: Setting) {
      const { load, direct, pods: paths } = setting
      bytes = await load.run('sizesOf', { target: direct, paths, headers })
      // Each pod once, so that all is recorded, however short the warming up.
      await load.run('sizesOf', { target: peer.target, paths, headers })
      await load.run('read', job(peer, paths, warmSeconds(setting)))
    },
    async measure(peer, { load, pods, seconds }) {
      const { result, cost } = await costOf(peer.processId, () =>
        load.run('read', job(peer, pods, seconds)),
      )
      return {
        figures: {
          rate: result.answers / result.seconds,
          p50: result.p50Ms,
          p99: result.p99Ms,
          cpu: each(cost.cpuSeconds, result.answers / 1000),
          besideMain: cost.besideMain && cost.besideMain * 100,
          memory: cost.peakMegabytes,
        },
        failures: result.failures,
        loadShare: result.loadShare,
      }
    },
  }
}

export const getPassed = gets(
  { name: 'get-passed', title: 'GET a pod, 16 connections, not recorded', needs: 'online' },
  passed,
  {
    p50: [aheadOf('yurthub')],
    cpu: [{ most: 1.15, to: 'http-proxy' }, aheadOf('yurthub')],
    besideMain: [{ most: 5 }],
  },
)

export const getRecorded = gets(
  { name: 'get-recorded', title: 'GET a pod, 16 connections, as a kubelet', needs: 'online' },
  recorded,
  {
    cpu: [
      { most: 1.3, to: 'http-proxy' },
      { most: 0.4, to: 'yurthub' },
    ],
  },
)

export const offlineGet = gets(
  { name: 'offline-get', title: 'GET a pod, 16 connections, API server gone', needs: 'offline' },
  recorded,
  // 30,000 requests a second of one core.
  { cpu: [{ most: 0.033 }] },
)
