/**
 * How many files a reader meets who follows a request: those of `src/` of which a function runs for
 * it. The sandbox, which is the API server here, does not count, nor what an event calls there.
 */
import { Session } from 'node:inspector/promises'
import type { HubConfig } from '../src/config/config.ts'
import t, { type Test } from 'tap'
import { podsOfNode, startCloud, type CloudServer } from './kit/cloud.ts'
import type { Watching } from './kit/client.ts'
import { goOffline, startOnlineHub, type TestHub } from './kit/hub.ts'

/** As many as there are; they only go down. */
const mostFiles = { 'a recorded get': 70, 'a watch event': 37, 'a list offline': 69 }

const pod = '/api/v1/namespaces/default/pods/a'

/** No probe falls into what is measured. */
const seldom = { intervalMs: 60_000, timeoutMs: 2_000, failedRetry: 1, healthyThreshold: 1 }

async function started(
  t: Test,
  config: Partial<HubConfig> = { heartbeat: seldom },
): Promise<{ readonly cloud: CloudServer; readonly hub: TestHub }> {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  // As hubs log by default: a line for each answer is for debugging.
  return { cloud, hub: await startOnlineHub(t, { upstreams: [cloud], config, logLevel: 'info' }) }
}

/** The calls in each file while `act` runs, round by round, after it has run before. */
async function callsOf(act: () => Promise<unknown>): Promise<ReadonlyMap<string, number>[]> {
  await act()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const rounds: Map<string, number>[] = []
  while (rounds.length < 5) {
    await act()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const calls = result.map(({ url, functions }) => {
      const counts = functions.map(({ ranges: [whole] }) => whole?.count ?? 0)
      return [sources.exec(url)?.[1] ?? '', counts.reduce((sum, count) => sum + count, 0)] as const
    })
    rounds.push(new Map(calls.filter(([file, count]) => file !== '' && count > 0)))
  }
  session.disconnect()
  return rounds
}

/**
 * The files of which a function runs whenever `act` does; `aside`: a part of it that is the API
 * server's alone.
 */
async function filesOf(
  act: () => Promise<unknown>,
  aside: () => Promise<unknown> = async () => undefined,
): Promise<string[]> {
  const theirs = await callsOf(aside)
  // What a timer of the hub does falls into some rounds only.
  const [first = new Map<string, number>(), ...others] = await callsOf(act)
  const most = (file: string): number => Math.max(...theirs.map((calls) => calls.get(file) ?? 0))
  const isMeant = (calls: ReadonlyMap<string, number>, file: string): boolean =>
    (calls.get(file) ?? 0) > most(file)
  return [...first.keys()].filter((file) => [first, ...others].every((each) => isMeant(each, file)))
}

const sources = /\/src\/(?!sandbox\/)(.*)/

function holds(t: Test, way: keyof typeof mostFiles, files: readonly string[]): void {
  t.comment(`${files.length} files: ${files.toSorted().join(' ')}`)
  t.ok(files.length <= mostFiles[way], `${way} meets ${files.length} files`)
  t.ok(
    files.some((file) => file.startsWith('hub/')),
    'of the hub',
  )
}

void t.test('a get that is recorded goes through few files', async (t) => {
  const { cloud, hub } = await started(t)
  const [kubelet, atCloud] = [hub.as('kubelet'), cloud.as('kubelet')]
  const files = await filesOf(
    () => kubelet.get(pod),
    () => atCloud.get(pod),
  )
  holds(t, 'a recorded get', files)
})

void t.test('so does an event of a watch', async (t) => {
  const { cloud, hub } = await started(t)
  const kubelet = hub.as('kubelet')
  let added = 0
  const add = async (): Promise<void> => cloud.addPods(`b-${(added += 1)}`)
  let watch: Watching | undefined
  const event = async (): Promise<void> => {
    const from = async () => ({ resourceVersion: (await kubelet.list(podsOfNode)).resourceVersion })
    watch ??= await kubelet.watch(podsOfNode, await from())
    await add()
    t.match(await watch.next(), { type: 'ADDED' })
  }
  holds(t, 'a watch event', await filesOf(event, add))
})

void t.test('and a list from the cache', async (t) => {
  const { cloud, hub } = await started(t, {})
  const kubelet = hub.as('kubelet')
  await kubelet.list(podsOfNode)
  await goOffline(cloud, hub)
  holds(t, 'a list offline', await filesOf(() => kubelet.list(podsOfNode)))
})
