import type { ReadJob } from '../load/read-load.ts'
import { costOf, each } from '../measure/cost.ts'
import type { Metric } from '../measure/row.ts'
import type { RunningPeer } from '../peers/peer.ts'
import { podPaths } from '../upstream/seed.ts'
import { json, passed, recorded } from './callers.ts'
import { warmSeconds, type Scenario, type Setting } from './scenario.ts'

const connections = 16

const metrics: readonly Metric[] = [
  { key: 'rate', title: 'requests/s', digits: 0, against: 'direct' },
  { key: 'p50', title: 'p50 ms', digits: 2, against: 'direct' },
  { key: 'p99', title: 'p99 ms', digits: 2, against: 'direct' },
  { key: 'cpu', title: 'cpu s/1,000', digits: 3, against: 'haproxy' },
  { key: 'memory', title: 'peak MB', digits: 0 },
]

/**
 * GETs of all pods in turn. Each answer has to be as long as the one that the API server gave
 * before.
 */
function gets(
  row: Pick<Scenario, 'name' | 'title' | 'needs'>,
  caller: Readonly<Record<string, string>>,
): Scenario {
  const headers = { ...caller, Accept: json }
  let bytes: readonly number[] = []
  const job = (peer: RunningPeer, seconds: number): ReadJob => ({
    target: peer.target,
    headers,
    paths: podPaths,
    bytes,
    slack: 0,
    connections,
    seconds,
  })
  return {
    ...row,
    metrics,
    async prime(peer: RunningPeer, setting: Setting) {
      const { load, direct } = setting
      bytes = await load.run('sizesOf', { target: direct, paths: podPaths, headers })
      // Each pod once, so that all is recorded, however short the warming up.
      await load.run('sizesOf', { target: peer.target, paths: podPaths, headers })
      await load.run('read', job(peer, warmSeconds(setting)))
    },
    async measure(peer, { load, seconds }) {
      const { result, cost } = await costOf(peer.processId, () =>
        load.run('read', job(peer, seconds)),
      )
      return {
        figures: {
          rate: result.answers / result.seconds,
          p50: result.p50Ms,
          p99: result.p99Ms,
          cpu: each(cost.cpuSeconds, result.answers / 1000),
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
)

export const getRecorded = gets(
  { name: 'get-recorded', title: 'GET a pod, 16 connections, as a kubelet', needs: 'online' },
  recorded,
)

export const offlineGet = gets(
  { name: 'offline-get', title: 'GET a pod, 16 connections, API server gone', needs: 'offline' },
  recorded,
)
