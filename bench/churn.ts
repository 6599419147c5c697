// npm run bench -- churn: what the hub holds in memory while everything on its node changes, round
// after round.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openWorkspace } from '../test/kit/cluster/workspace.ts'
import { ensureBuilt } from './build.ts'
import { Lifetime } from './lifetime.ts'
import type { JobOf } from './load/jobs.ts'
import { LoadProcess } from './load/load-process.ts'
import { machine } from './machine.ts'
import { usageOf } from './measure/process-usage.ts'
import { steadySlope } from './measure/growth.ts'
import { median } from './measure/statistics.ts'
import { startHub } from './peers/hub.ts'
import { json, passed, protobuf, recorded } from './scenarios/callers.ts'
import { sandboxUpstream } from './upstream/sandbox.ts'
import {
  clientOf,
  createAll,
  pod,
  podNamespace,
  podPaths,
  podsOfNode,
  seed,
} from './upstream/seed.ts'
import { nodeName, type Upstream } from './upstream/upstream.ts'

const usage = `Usage: npm run bench -- churn [--minutes N]

Patches 50 pods a second and replaces 50 pods four times a minute for so many minutes (60), while a kubelet
watches, lists in JSON and protobuf and gets, and another client gets. Fails if, with no watch open,
the hub holds a tenth more in the last quarter than in the second one, if that grows by more than 10 MB
an hour, or if a client is failed.
`

const roundSeconds = 15
const patchesASecond = 50
const replacedEach = 50
/** Of a round, for each kind of read: most of the time of a node nobody reads. */
const readShare = 1 / 20
const settledMs = 2000
/** By which memory may differ without growing. */
const slack = 1.1
/** A slope of fewer rounds is one of what is collected when. */
const roundsOfSlope = 120
const mostHourly = 10

export interface ChurnOptions {
  readonly rounds: number
  /** Of one round. */
  readonly seconds: number
  /** The entry of the hub. */
  readonly hub: string
}

/** Returns the exit code. */
export async function benchChurn(
  argv: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string', default: '60' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const minutes = Number(values.minutes)
  if (values.help || !Number.isInteger(minutes) || minutes < 1) {
    say(usage)
    return values.help ? 0 : 2
  }
  say(`${machine()}\n`)
  return await churn(
    { rounds: (minutes * 60) / roundSeconds, seconds: roundSeconds, hub: ensureBuilt() },
    say,
  )
}

/** Runs so many rounds; 1 where memory grows or a client is failed. */
export async function churn(
  { rounds, seconds, hub }: ChurnOptions,
  say: (line: string) => void,
): Promise<number> {
  await using lifetime = new Lifetime(say)
  const upstream = await sandboxUpstream(lifetime)
  await seed(upstream.admin)
  const peer = await startHub(upstream, openWorkspace(lifetime), {
    name: 'hub',
    module: hub,
    peer: 'hub',
  })
  await using watcher = new LoadProcess()
  await using writer = new LoadProcess()
  await using reader = new LoadProcess()
  const held: number[] = []
  let failed = 0
  const failures = (who: string, counts: Readonly<Record<string, number>>): void => {
    for (const [what, count] of Object.entries(counts)) {
      failed += count
      say(`${who}: ${count} times: ${what}`)
    }
  }
  const count = Math.ceil(seconds * patchesASecond)
  for (let round = 0; round < rounds; round += 1) {
    const [from, to] = [round * count, (round + 1) * count]
    await watcher.run('watch', {
      target: peer.target,
      reference: upstream.node,
      path: podsOfNode,
      headers: { ...recorded, Accept: json },
    })
    const writes = { target: upstream.admin, paths: podPaths(), from, count }
    const [written] = await Promise.all([
      writer.run('write', { ...writes, perSecond: patchesASecond }),
      replacePods(upstream, round),
      (async () => {
        for (const read of readsOf(peer.target, seconds * readShare))
          failures('reads', (await reader.run('read', read)).failures)
      })(),
    ])
    failures('writes', written.failures)
    failures('watch', (await watcher.run('watched', { from, to, patienceMs: 30_000 })).failures)
    await sleep(Math.min(settledMs, seconds * 1000))
    const { residentBytes, anonymousBytes } = usageOf(peer.processId ?? 0)
    held.push(anonymousBytes / 1e6)
    say(
      `${round + 1} of ${rounds}: ${megabytes(residentBytes / 1e6)} resident, ${megabytes(anonymousBytes / 1e6)} of it anonymous`,
    )
  }
  const [second, last] = quarters(held)
  const hourly = (steadySlope(secondHalf(held)) * 3600) / seconds
  const grows = last > second * slack || (rounds >= roundsOfSlope && hourly > mostHourly)
  say(
    `anonymous memory: ${megabytes(second)} in the second quarter, ${megabytes(last)} in the last: ${grows ? 'it grows' : 'it does not grow'}; ${hourly.toFixed(1)} MB an hour in the second half`,
  )
  lifetime.failed = grows || failed > 0
  return lifetime.failed ? 1 : 0
}

/** The medians of the second and the last quarter. */
export const quarters = (held: readonly number[]): readonly [second: number, last: number] => {
  const each = Math.floor(held.length / 4)
  return [median(held.slice(each, 2 * each)), median(held.slice(-each))]
}

/** By rounds. */
const secondHalf = (held: readonly number[]): readonly { size: number; value: number }[] =>
  held.slice(Math.floor(held.length / 2)).map((value, size) => ({ size, value }))

const megabytes = (value: number): string => `${value.toFixed(0)} MB`

/** Whatever a body's length is by then. */
const anyLength = { slack: Number.MAX_SAFE_INTEGER, connections: 1 }

function readsOf(target: JobOf<'read'>['target'], seconds: number): readonly JobOf<'read'>[] {
  const [lists, gets] = [[`${podsOfNode}&resourceVersion=0`], podPaths()]
  return (
    [
      [lists, { ...recorded, Accept: json }],
      [lists, { ...recorded, Accept: protobuf }],
      [gets, { ...recorded, Accept: protobuf }],
      [gets, { ...passed, Accept: json }],
    ] as const
  ).map(([paths, headers]) => ({
    target,
    headers,
    paths,
    bytes: paths.map(() => 0),
    seconds,
    ...anyLength,
  }))
}

/** Makes the pods of a round, and deletes those of the round before. */
async function replacePods({ admin }: Upstream, round: number): Promise<void> {
  const collection = `/api/v1/namespaces/${podNamespace}/pods`
  const names = (of: number): string[] =>
    Array.from({ length: replacedEach }, (_, at) => `churn-${of}-${at}`)
  await createAll(
    admin,
    names(round).map((name, at) => [collection, pod(name, at, nodeName)]),
  )
  if (round === 0) return
  const client = clientOf(admin)
  try {
    for (const name of names(round - 1)) {
      const { status } = await client.send('DELETE', `${collection}/${name}?gracePeriodSeconds=0`)
      if (status !== 200) throw new Error(`DELETE ${name}: ${status}`)
    }
  } finally {
    client.close()
  }
}
