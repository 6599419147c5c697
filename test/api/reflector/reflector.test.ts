import t, { type Test as Tap } from 'tap'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import {
  ResourceExpired,
  Reflector,
  type ListerWatcher,
  type ReflectorParts,
} from '../../../src/api/reflector/reflector.ts'
import { Condition } from '../../kit/condition.ts'

const added = (version: string): WatchEvent => ({
  type: 'ADDED',
  object: {
    namespace: 'default',
    name: `at-${version}`,
    uid: 'uid',
    resourceVersion: version,
    bytes: Buffer.from('{}'),
  },
})

interface Reflecting {
  /** What the API server was asked and the handler heard, in order. */
  readonly log: string[]
  readonly until: (line: string) => Promise<void>
  /** How many lists were started. */
  readonly lists: () => number
  readonly untilLists: (count: number) => Promise<void>
  readonly done: Promise<void>
  readonly stop: () => Promise<void>
}

type Watches = (from: string, signal: AbortSignal) => AsyncIterable<readonly WatchEvent[]>

/** A reflector of a collection that is held at `held`, and listed at 50, if lists are held. */
function reflecting(
  t: Tap,
  {
    watch,
    holdsLists = true,
    ...rest
  }: { readonly watch: Watches; readonly holdsLists?: boolean } & Partial<
    Pick<ListerWatcher, 'list' | 'isRestored'> &
      Pick<ReflectorParts, 'waitUntilReachable' | 'onRecovery'>
  >,
  held: string | undefined,
  inDoubt = false,
): Reflecting {
  const log: string[] = []
  const condition = new Condition()
  const say = (line: string): void => {
    log.push(line)
    condition.changed()
  }
  const { list = () => Promise.resolve(), isRestored, waitUntilReachable, onRecovery } = rest
  let version = held
  const listerWatcher: ListerWatcher = {
    list: async (wanted, signal) => {
      say(`list ${wanted}`)
      await list(wanted, signal)
      if (holdsLists) version = '50'
    },
    watch: async ({ resourceVersion }, signal) => {
      say(`watch ${resourceVersion}`)
      return watch(resourceVersion, signal)
    },
    ...(isRestored && { isRestored }),
  }
  const reflector = new Reflector(
    {
      listerWatcher,
      version: () => version,
      ...(waitUntilReachable && { waitUntilReachable }),
      ...(onRecovery && { onRecovery }),
    },
    {
      onSynced: () => say('synced'),
      onOpen: () => say('open'),
      onEvents: (events) => {
        for (const event of events) if ('object' in event) version = event.object.resourceVersion
        say(`events to ${version}`)
      },
      onClosed: () => say('closed'),
      onFailed: (cause) => say(`failed: ${(cause as Error).message}`),
    },
    inDoubt,
  )
  const ending = new AbortController()
  const done = reflector.run(ending.signal)
  const stop = (): Promise<void> => {
    ending.abort()
    return done
  }
  t.teardown(stop)
  const until = async (line: string): Promise<void> => {
    await condition.until(() => log.includes(line))
  }
  const lists = (): number => log.filter((line) => line.startsWith('list ')).length
  const untilLists = (count: number): Promise<void> => condition.until(() => lists() >= count)
  return { log, until, lists, untilLists, done, stop }
}

/** Stays open until it is aborted. */
async function* silence(signal: AbortSignal): AsyncGenerator<readonly WatchEvent[]> {
  yield []
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
}

async function* events(...all: readonly WatchEvent[]): AsyncGenerator<readonly WatchEvent[]> {
  for (const event of all) yield [event]
}

// The clock's timers keep no process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))

void t.test('where in doubt, a consistent read detects a restored cluster', async (t) => {
  for (const [inDoubt, expected] of [
    [true, ['list ', 'synced', 'watch 50', 'open']],
    [false, ['synced', 'watch 90', 'open']],
  ] as const) {
    const watch: Watches = (_from, signal) => silence(signal)
    const isRestored = () => Promise.resolve(true)
    const { log, until } = reflecting(t, { watch, isRestored }, '90', inDoubt)
    await until('open')
    t.strictSame(log, expected)
  }
})

void t.test('a cluster restored while its state is listed after a 410 is detected', async (t) => {
  let isRestored = false
  const watch: Watches = (from, signal) => {
    if (from === '90') throw new ResourceExpired()
    return silence(signal)
  }
  const list = async (): Promise<void> => {
    if (isRestored) return
    isRestored = true
    throw new Error('it is stopped for the restore')
  }
  const parts = { watch, list, isRestored: async () => isRestored }
  const { log, until } = reflecting(t, parts, '90')
  await until('open')
  t.strictSame(
    log.filter((line) => line.startsWith('list')),
    ['list 0', 'list '],
  )
})

void t.test('a cut watch is in doubt, and so is one that had to wait for its link', async (t) => {
  let asked = 0
  const isRestored = async (): Promise<boolean> => {
    asked += 1
    return false
  }
  const watch: Watches = (from, signal) => (from === '60' ? silence(signal) : events(added('60')))
  const cut = reflecting(t, { watch, isRestored }, '55')
  await cut.until('watch 60')
  t.equal(asked, 1)
  const waited = { watch, isRestored, waitUntilReachable: () => Promise.resolve(true) }
  await reflecting(t, waited, '60').until('open')
  t.equal(asked, 2)
})

void t.test('after a list that is not held the pause is longer than after a failure', async (t) => {
  const watch: Watches = (_from, signal) => silence(signal)
  const several = (of: Parameters<typeof reflecting>[1]): Reflecting[] =>
    Array.from({ length: 8 }, () => reflecting(t, of, undefined))
  const notHeld = several({ watch, holdsLists: false })
  await Promise.all(
    notHeld.map(({ until }) => until('failed: the list of the collection is not held')),
  )
  const list = (): Promise<void> => Promise.reject(new Error('no answer'))
  const failing = several({ watch, list })
  await Promise.all(failing.map(({ untilLists }) => untilLists(2)))
  for (const { lists } of notHeld) t.equal(lists(), 1)
})
