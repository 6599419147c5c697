import { listSlack } from '../load/read-load.ts'
import { costOf, each } from '../measure/cost.ts'
import { type Metric, sumOf } from '../measure/row.ts'
import type { Target } from '../load/target.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, recorded } from './callers.ts'
import type { Scenario } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'plain', title: 'plain ms', digits: 2 },
  { key: 'tls', title: 'TLS ms', digits: 2 },
  { key: 'plainCpu', title: 'plain cpu ms', digits: 3 },
  { key: 'tlsCpu', title: 'TLS cpu ms', digits: 3 },
  { key: 'overhead', title: 'cpu TLS : plain', digits: 2 },
]

const headers = { ...recorded, Accept: json }

/**
 * The same requests on the plain listener and, as the node by its certificate, on the TLS listener
 * of one process.
 */
function onBoth(
  row: Pick<Scenario, 'name' | 'title'>,
  pathsOf: (pods: readonly string[]) => readonly string[],
  connections: number,
): Scenario {
  return {
    ...row,
    needs: 'online',
    metrics,
    takes: ({ secure }) => secure !== undefined,
    async prime({ target, secure }, { load, pods }) {
      const paths = pathsOf(pods)
      for (const each of [target, secure])
        if (each !== undefined) await load.run('sizesOf', { target: each, paths, headers })
    },
    async measure(peer, { load, pods, seconds }) {
      const paths = pathsOf(pods)
      const bytes = await load.run('sizesOf', { target: peer.target, paths, headers })
      const on = async (target: Target) => {
        const job = { target, headers, paths, bytes, slack: listSlack, connections, seconds }
        const { result, cost } = await costOf(peer.processId, () => load.run('read', job))
        return { ...result, cpu: each(cost.cpuSeconds, result.answers / 1000) }
      }
      if (peer.secure === undefined) throw new Error(`${peer.name} has no TLS listener`)
      const plain = await on(peer.target)
      const tls = await on(peer.secure)
      return {
        figures: {
          plain: plain.p50Ms,
          tls: tls.p50Ms,
          plainCpu: plain.cpu,
          tlsCpu: tls.cpu,
          overhead: each(tls.cpu, plain.cpu ?? 0),
        },
        failures: sumOf([plain.failures, tls.failures]),
        loadShare: Math.max(plain.loadShare, tls.loadShare),
      }
    },
  }
}

export const tlsGet = onBoth(
  { name: 'tls-get', title: 'GET a pod, 16 connections, plain and over TLS' },
  (pods) => pods,
  16,
)

export const tlsList = onBoth(
  { name: 'tls-list', title: 'LIST 500 pods in JSON, plain and over TLS' },
  () => [`${podsOfNode}&limit=500&resourceVersion=0`],
  1,
)
