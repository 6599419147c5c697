import { setTimeout as sleep } from 'node:timers/promises'
import { type Metric, sumOf } from '../measure/row.ts'
import { isHub, type RunningPeer } from '../peers/peer.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { nodeName } from '../upstream/upstream.ts'
import { json, recorded } from './callers.ts'
import type { Scenario, Setting } from './scenario.ts'

const headers = { ...recorded, Accept: json }

/** What a node's watches see at most, while all is well (kubernetes/community, sig-scalability). */
const perSecond = 20

let next = 0

/**
 * Events go through a watch as a kubelet's, for as long as a measurement lasts; `meanwhile` runs
 * beside, once it is open.
 */
async function events<Result>(
  peer: RunningPeer,
  { load, writer, direct, admin, pods, seconds }: Setting,
  meanwhile: () => Promise<Result>,
) {
  const from = next
  const count = Math.ceil(seconds * perSecond)
  next += count
  await load.run('watch', { target: peer.target, reference: direct, path: podsOfNode, headers })
  const writing = writer.run('write', { target: admin, paths: pods, from, count, perSecond })
  const [result, written] = await Promise.all([meanwhile(), writing])
  const watched = await load.run('watched', { from, to: next, patienceMs: 5000 })
  return { result, count, failures: sumOf([written.failures, watched.failures]) }
}

const diskMetrics: readonly Metric[] = [
  { key: 'bytes', title: 'kB/event', digits: 1 },
  { key: 'times', title: 'written : bytes of the events', digits: 2, aims: [{ most: 2.2 }] },
  { key: 'writes', title: 'writes/event', digits: 1 },
  { key: 'syncs', title: 'syncs/s', digits: 2, aims: [{ most: 0.2 }] },
]

/** What the first list has the store do, as to write its log anew, is over by then. */
const quietMs = 3000

/**
 * Shorter rounds say little: the log is written anew once its garbage exceeds what is in use by
 * 8 MiB, which takes these events a minute, and what is no deletion is synced every five seconds.
 */
const leastSeconds = 60

/** What twenty events a second cost the disk. */
export const disk: Scenario = {
  name: 'disk',
  title: 'written to the disk at 20 events/s of one watch',
  needs: 'online',
  metrics: diskMetrics,
  takes: isHub,
  async prime(of, setting) {
    const { peer } = await setting.hubs.onDisk(of)
    // All pods are recorded then.
    await events(peer, setting, () => Promise.resolve())
    await sleep(quietMs)
  },
  async measure(of, round) {
    const setting = { ...round, seconds: Math.max(round.seconds, leastSeconds) }
    const { peer, disk } = await setting.hubs.onDisk(of)
    const places = ['bytes', 'writes', 'syncsEnded'] as const
    const counts = (): number[] => [
      ...places.map((place) => disk.count(place)),
      performance.now() / 1000,
    ]
    // The list that a watch begins with is committed, and synced, before.
    const {
      result: before,
      count,
      failures,
    } = await events(peer, setting, () => Promise.resolve(counts()))
    const [bytes = 0, writes = 0, syncs = 0, taken = 0] = counts().map(
      (now, at) => now - (before[at] ?? 0),
    )
    const { load, direct, pods } = setting
    const [pod = ''] = pods
    const { body } = await load.run('fetchOnce', { target: direct, path: pod, headers })
    return {
      figures: {
        bytes: bytes / count / 1000,
        times: bytes / count / body.length,
        writes: writes / count,
        syncs: syncs / taken,
      },
      failures,
      loadShare: 0,
    }
  },
}

/** A memory card that is at its worst. */
const delayMs = 50

const slowMetrics: readonly Metric[] = [
  { key: 'p50', title: 'p50 ms', digits: 2 },
  { key: 'p99', title: 'p99 ms', digits: 2 },
  { key: 'slowP50', title: 'slow p50 ms', digits: 2 },
  { key: 'slowP99', title: 'slow p99 ms', digits: 2 },
  { key: 'slowSyncs', title: 'slow syncs/s', digits: 1 },
]

const node = [`/api/v1/nodes/${nodeName}`]

/**
 * GETs of what is recorded and does not change, while lists and events are recorded: on this disk,
 * and with syncs of 50 ms.
 */
export const slowDisk: Scenario = {
  name: 'slow-disk',
  title: 'GET the node while lists and events are recorded, without and with 50 ms a sync',
  needs: 'online',
  metrics: slowMetrics,
  takes: isHub,
  prime: async (of, { hubs }) => void (await hubs.onDisk(of)),
  async measure(of, setting) {
    const { peer, disk } = await setting.hubs.onDisk(of)
    const { load, seconds } = setting
    const read = async () => {
      const bytes = await load.run('sizesOf', { target: peer.target, paths: node, headers })
      const over = new AbortController()
      const listing = listAgainAndAgain(peer, over.signal)
      const job = {
        target: peer.target,
        headers,
        paths: node,
        bytes,
        slack: 0,
        connections: 1,
        seconds,
      }
      const result = await load.run('read', job)
      over.abort()
      await listing
      return result
    }
    const plain = await events(peer, setting, read)
    const before = disk.count('syncsEnded')
    disk.delaySyncs(delayMs)
    try {
      const slow = await events(peer, setting, read)
      return {
        figures: {
          p50: plain.result.p50Ms,
          p99: plain.result.p99Ms,
          slowP50: slow.result.p50Ms,
          slowP99: slow.result.p99Ms,
          slowSyncs: (disk.count('syncsEnded') - before) / seconds,
        },
        failures: sumOf([plain, slow].flatMap((each) => [each.failures, each.result.failures])),
        loadShare: slow.result.loadShare,
      }
    } finally {
      disk.delaySyncs(0)
    }
  },
}

/**
 * Whose pods have changed since: each list is replaced, and waits for the disk. Twice a second, as
 * what is asked is not what a list takes.
 */
async function listAgainAndAgain({ target }: RunningPeer, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const answer = await fetch(target.url + podsOfNode, { headers })
    await answer.arrayBuffer()
    await sleep(500)
  }
}
