/**
 * How many files a reader meets who follows a request: those of `src/` of which a function runs for
 * it. The sandbox, which is the API server here, does not count.
 */
import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import t, { type Test } from 'tap'
import { podsOfNode, type CloudServer } from './kit/cloud.ts'
import { onlineNode, goOffline, type TestHub } from './kit/hub.ts'

/** As many as there are; they only go down. */
const mostFiles = { 'a recorded get': 108, 'a watch event': 86, 'a list offline': 100 }

const pod = '/api/v1/namespaces/default/pods/a'

async function started(t: Test): Promise<{ readonly cloud: CloudServer; readonly hub: TestHub }> {
  const { cloud, hub } = await onlineNode(t, 'a')
  return { cloud, hub }
}

/** The files of which a function runs whenever `act` does, after it has run before. */
async function filesOf(act: () => Promise<unknown>): Promise<string[]> {
  await act()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const rounds: Set<string>[] = []
  while (rounds.length < 5) {
    await act()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const ran = result.filter(({ functions }) => functions.some(hasRun))
    rounds.push(new Set(ran.map(({ url }) => sources.exec(url)?.[1] ?? '').filter(Boolean)))
  }
  session.disconnect()
  // What a timer of the hub does falls into some rounds only.
  const [first = new Set(), ...others] = rounds
  return [...first].filter((file) => others.every((each) => each.has(file)))
}

const sources = /\/src\/(?!sandbox\/)(.*)/

const hasRun = ({ ranges: [whole] }: Profiler.FunctionCoverage): boolean =>
  whole !== undefined && whole.count > 0

function holds(t: Test, way: keyof typeof mostFiles, files: readonly string[]): void {
  t.comment(`${files.length} files: ${files.toSorted().join(' ')}`)
  t.ok(files.length <= mostFiles[way], `${way} meets ${files.length} files`)
  t.ok(
    files.some((file) => file.startsWith('hub/')),
    'of the hub',
  )
}

void t.test('a get that is recorded goes through few files', async (t) => {
  const { hub } = await started(t)
  const kubelet = hub.as('kubelet')
  holds(t, 'a recorded get', await filesOf(() => kubelet.get(pod)))
})

void t.test('so does an event of a watch', async (t) => {
  const { cloud, hub } = await started(t)
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  let added = 0
  const event = async (): Promise<void> => {
    cloud.addPods(`b-${(added += 1)}`)
    t.match(await watch.next(), { type: 'ADDED' })
  }
  holds(t, 'a watch event', await filesOf(event))
})

void t.test('and a list from the cache', async (t) => {
  const { cloud, hub } = await started(t)
  const kubelet = hub.as('kubelet')
  await kubelet.list(podsOfNode)
  await goOffline(cloud, hub)
  holds(t, 'a list offline', await filesOf(() => kubelet.list(podsOfNode)))
})
