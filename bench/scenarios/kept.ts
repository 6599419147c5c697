import type { ReadResult } from '../load/read-load.ts'
import { steadySlope } from '../measure/growth.ts'
import { Held } from '../measure/held.ts'
import { sumOf, type Metric } from '../measure/row.ts'
import { isHub } from '../peers/peer.ts'
import { json, passed, recorded } from './callers.ts'
import { warmSeconds, type Scenario } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'recorded', title: 'B/GET recorded', digits: 0, aims: [{ most: 100 }] },
  { key: 'passed', title: 'B/GET passed on', digits: 0, aims: [{ most: 100 }] },
]

const connections = 16

/** What is held moves by a megabyte or so with what is under way: one look would say little. */
const parts = 6

/** What is still held of each request when all garbage is collected: a leak, however small. */
export const kept: Scenario = {
  name: 'kept',
  title: 'bytes that the hub still holds of each GET, after a collection of garbage',
  needs: 'online',
  metrics,
  takes: isHub,
  prime: async (of, { hubs }) => void (await hubs.inspected(of)),
  async measure(of, setting) {
    const { load, hubs, pods, seconds } = setting
    const { peer, inspector } = await hubs.inspected(of)
    using held = await Held.of(inspector)
    const keptOf = async (caller: Readonly<Record<string, string>>) => {
      const { target } = peer
      const headers = { ...caller, Accept: json }
      const bytes = await load.run('sizesOf', { target, paths: pods, headers })
      const job = { target, headers, paths: pods, bytes, slack: 0, connections }
      await load.run('read', { ...job, seconds: warmSeconds(setting) })
      const points = [{ size: 0, value: await held.bytes() }]
      const failures: ReadResult['failures'][] = []
      let answers = 0
      for (let part = 0; part < parts; part += 1) {
        const result = await load.run('read', { ...job, seconds: (2 * seconds) / parts })
        failures.push(result.failures)
        points.push({ size: (answers += result.answers), value: await held.bytes() })
      }
      return { failures: sumOf(failures), each: steadySlope(points) }
    }
    const own = await keptOf(recorded)
    const others = await keptOf(passed)
    return {
      figures: { recorded: own.each, passed: others.each },
      failures: sumOf([own.failures, others.failures]),
      loadShare: 0,
    }
  },
}
