import t, { type Test as Tap } from 'tap'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import {
  ResourceExpired,
  Reflector,
  type ListerWatcher,
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
    Pick<ListerWatcher, 'list'>
  >,
  held: string | undefined,
): Reflecting {
  const log: string[] = []
  const condition = new Condition()
  const say = (line: string): void => {
    log.push(line)
    condition.changed()
  }
  const { list = () => Promise.resolve() } = rest
  let version = held
  const listerWatcher: ListerWatcher = {
    list: async (signal) => {
      say('list')
      await list(signal)
      if (holdsLists) version = '50'
    },
    watch: async ({ resourceVersion }, signal) => {
      say(`watch ${resourceVersion}`)
      return watch(resourceVersion, signal)
    },
  }
  const reflector = new Reflector(
    {
      listerWatcher,
      version: () => version,
    },
    {
      onOpen: () => say('open'),
      onEvents: (events) => {
        for (const event of events) if ('object' in event) version = event.object.resourceVersion
        say(`events to ${version}`)
      },
      onClosed: () => say('closed'),
      onFailed: (cause) => say(`failed: ${(cause as Error).message}`),
    },
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
  const lists = (): number => log.filter((line) => line === 'list').length
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

void t.test('a cut watch goes on where it was, and one whose version expired lists', async (t) => {
  const watch: Watches = (from, signal) => {
    if (from === '60') throw new ResourceExpired()
    return from === '50' ? silence(signal) : events(added('60'))
  }
  const { log, until } = reflecting(t, { watch }, '55')
  await until('watch 50')
  t.strictSame(
    log.filter((line) => /^(list|watch)/.test(line)),
    ['watch 55', 'watch 60', 'list', 'watch 50'],
  )
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
