import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { usageOf } from '../measure/process-usage.ts'
import type { Metric } from '../measure/row.ts'
import { isHub, type RunningPeer } from '../peers/peer.ts'
import { freePort } from '../../test/kit/free-port.ts'
import { firstOf, seedMany, servicesOf } from '../upstream/services.ts'
import { json, recorded } from './callers.ts'
import type { Scenario, Setting } from './scenario.ts'

const metrics: readonly Metric[] = [
  { key: 'get', title: 'first GET ms', digits: 0 },
  { key: 'times', title: 'first GET : node -e 0', digits: 1, aims: [{ most: 5 }] },
  { key: 'cpu', title: 'cpu ms by then', digits: 0 },
  { key: 'list', title: 'first LIST ms', digits: 0 },
  { key: 'listTimes', title: 'first LIST : node -e 0', digits: 1, aims: [{ most: 5 }] },
  { key: 'newest', title: 'first GET of the newest state ms', digits: 0 },
  { key: 'bare', title: 'node -e 0 ms', digits: 0 },
]

const headers = { ...recorded, Accept: json }

/** Many times what a start takes. */
const patienceMs = 30_000

/** The hubs that have listed what they are to answer with after a start. */
const recordedBy = new Map<string, Promise<void>>()

/** An API server as a start finds it, until it is disposed of. */
interface Server extends Disposable {
  readonly url: string | undefined
}

/**
 * From the start of a hub's process to its first answers, out of a store with so many objects that
 * a kill -9 has left.
 */
const starts = (
  [name, what, server]: readonly [name: string, what: string, server: () => Promise<Server>],
  count: number,
): Scenario => ({
  name: `start-${name}`,
  title: `start with ${count.toLocaleString('en-US')} services stored, after kill -9, API server ${what}`,
  needs: 'online',
  metrics,
  takes: isHub,
  async prime(peer, setting) {
    await seedMany(setting.admin, count)
    const recording = recordedBy.get(peer.name) ?? recordAll(peer, setting, count)
    recordedBy.set(peer.name, recording)
    await recording
  },
  async measure(peer, { hubs, load }) {
    using at = await server()
    const { daemon, target } = await hubs.restarted(peer, 'start', at.url)
    const bareFrom = performance.now()
    spawnSync(process.execPath, ['-e', '0'])
    const bare = performance.now() - bareFrom
    const from = performance.now()
    await daemon.start()
    try {
      const path = firstOf(count)
      // As a kubelet reads its node first. Without a version the newest state is wanted, which the
      // cache may not stand for before it is known that no API server answers.
      const ofAnyAge = `${path}?resourceVersion=0`
      await answered(() => load.run('fetchOnce', { target, path: ofAnyAge, headers }))
      const get = performance.now() - from
      const cpu = usageOf(daemon.id).cpuSeconds * 1000
      const { items } = await answered(() =>
        load.run('countItems', { target, path: `${servicesOf(count)}resourceVersion=0`, headers }),
      )
      const list = performance.now() - from
      await answered(() => load.run('fetchOnce', { target, path, headers }))
      const newest = performance.now() - from
      return {
        figures: { get, times: get / bare, cpu, list, listTimes: list / bare, newest, bare },
        failures: items === count ? {} : { [`a list of ${items}`]: 1 },
        loadShare: 0,
      }
    } finally {
      await daemon.kill()
    }
  },
})

async function recordAll(peer: RunningPeer, { hubs, load }: Setting, count: number): Promise<void> {
  const { daemon, target } = await hubs.restarted(peer, 'start')
  await daemon.start()
  try {
    await answered(() =>
      load.run('countItems', { target, path: `${servicesOf(count)}resourceVersion=0`, headers }),
    )
    await answered(() => load.run('fetchOnce', { target, path: firstOf(count), headers }))
  } finally {
    await daemon.stop()
  }
}

/** The first answer with status 200. */
async function answered<Answer extends { readonly status: number }>(
  ask: () => Promise<Answer>,
): Promise<Answer> {
  const until = performance.now() + patienceMs
  for (;;) {
    const answer = await ask().catch((error: Error) => error)
    if (!(answer instanceof Error) && answer.status === 200) return answer
    if (performance.now() > until)
      throw new Error(
        `no answer in ${patienceMs} ms: ${answer instanceof Error ? answer.message : answer.status}`,
      )
    await sleep(2)
  }
}

const nothing = (): void => undefined

const gone = async (): Promise<Server> => ({
  url: `https://127.0.0.1:${await freePort()}`,
  [Symbol.dispose]: nothing,
})

const healthy = (): Promise<Server> =>
  Promise.resolve({ url: undefined, [Symbol.dispose]: nothing })

/** It takes connections and says nothing. */
async function silent(): Promise<Server> {
  const server = createServer(nothing)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() }
}

const servers = [
  ['gone', 'gone', gone],
  ['silent', 'silent', silent],
  ['healthy', 'well', healthy],
] as const

export const startRows = (count: number): readonly Scenario[] =>
  servers.map((server) => starts(server, count))
