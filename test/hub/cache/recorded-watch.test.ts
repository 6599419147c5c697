import t from 'tap'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { ByteSource } from '../../../src/http/exchange/exchange.ts'
import { StoreFailure } from '../../../src/hub/store/store.ts'
import { changed, object } from '../../contracts/object-store.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { failingSource } from '../../kit/failing-source.ts'
import { event, page, pods, recordingIn, singlePod } from './recording.ts'

for (const comparesEvents of [true, false]) {
  const told = comparesEvents ? 'given where events are compared' : 'not read where they are not'
  void t.test(`the previous object of an event is ${told}`, async (t) => {
    await using cache = await recordingIn(t.testdir(), comparesEvents)
    await cache.list(pods, page(95, { a: 90 }))
    const [change] = await cache.list(
      `${pods}?watch=1&resourceVersion=95`,
      event('MODIFIED', 'a', 101),
    )
    const previous = change && 'previous' in change ? change.previous : undefined
    t.equal(previous?.resourceVersion, comparesEvents ? '90' : undefined)
    t.strictSame([cache.version(), cache.names()], ['101', ['a at 101']])
  })
}

const previousVersions = (events: readonly WatchEvent[]): (string | undefined)[] =>
  events.map((each) => ('previous' in each ? each.previous?.resourceVersion : undefined))

void t.test(
  'an event that another watch has stored has the previous object that it had there',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90 }))
    const watch = async (): Promise<WatchEvent[]> =>
      cache.list(
        `${pods}?watch=1&resourceVersion=95`,
        event('MODIFIED', 'a', 101) + event('ADDED', 'b', 102) + event('MODIFIED', 'a', 103),
      )
    const first = await watch()
    t.strictSame(previousVersions(first), ['90', undefined, '101'])
    t.strictSame(previousVersions(await watch()), ['90', undefined, '101'])
  },
)

void t.test(
  'an event that another watch stores first has the previous object that it had there',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90 }))
    let send: (text: string) => void = () => undefined
    const events = await cache.watch(`${pods}?watch=1&resourceVersion=95`, (sink) => {
      send = (text) => void sink.write(Buffer.from(text))
      send(event('ADDED', 'b', 100))
      return () => undefined
    })
    const groups = events[Symbol.asyncIterator]()
    t.equal((await groups.next()).done, false)
    await cache.store.apply(cache.key, [changed('MODIFIED', object('a', 101))])
    send(event('MODIFIED', 'a', 101))
    const next = await groups.next()
    t.strictSame(previousVersions(next.done ? [] : next.value), ['90'])
  },
)

void t.test('a watch is recorded further where previous objects cannot be read', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90 }))
  await cache.store.apply(cache.key, [changed('MODIFIED', object('a', 101))])
  const { store } = cache
  const changes = store.changes.bind(store)
  store.changes = (...of) => {
    const found = changes(...of)
    const batches: Iterable<never> = {
      [Symbol.iterator]: () => {
        throw new StoreFailure('the disk cannot be read')
      },
    }
    return typeof found === 'object' ? { ...found, batches } : found
  }
  const told = await cache.list(
    `${pods}?watch=1&resourceVersion=95`,
    event('MODIFIED', 'a', 101) + event('MODIFIED', 'a', 102),
  )
  t.strictSame(previousVersions(told), [undefined, '101'])
  t.equal(cache.version(), '102')
})

void t.test(
  'an event that another watch is still writing is shown once it is stored',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90 }))
    const busy = cache.occupyWriter()
    const writing = cache.store.apply(cache.key, [changed('MODIFIED', object('a', 101))])
    const shown = await cache.list(
      `${pods}?watch=1&resourceVersion=95`,
      event('MODIFIED', 'a', 101),
    )
    t.equal(shown.length, 1)
    t.equal(cache.store.committedVersion(cache.key), '101')
    await Promise.all([busy, writing])
  },
)

void t.test('a watch that begins after the stored version is not recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90, b: 91 }))
  // What happened to them between 95 and 99 is not known here.
  const told = await cache.list(`${pods}?watch=1&resourceVersion=99`, event('ADDED', 'c', 101))
  t.equal(told.length, 1, 'it is passed on')
  t.strictSame([cache.version(), cache.names()], ['95', ['a at 90', 'b at 91']])
})

void t.test('a watch of a client itself is not recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90 }))
  const exchange = exchangeOf(`${pods}?watch=1&resourceVersion=95`, {
    headers: { Accept: 'application/json' },
  })
  const [told] = await cache.asked(exchange).answer(event('MODIFIED', 'a', 101))
  t.equal(told?.type, 'MODIFIED', 'it is passed on')
  t.strictSame([cache.version(), cache.names()], ['95', ['a at 90']])
})

void t.test('a repeated deletion takes an older record, and not one of what left', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const selected = `${pods}?labelSelector=app%3Dx`
  const pod = (name: string): string => `/api/v1/namespaces/default/pods/${name}`
  await cache.list(pod('a'), singlePod('a', 50))
  await cache.list(selected, page(60, {}))
  await cache.list(pod('b'), singlePod('b', 59))
  const told = await cache.list(
    `${selected}&watch=1&resourceVersion=49`,
    event('DELETED', 'a', 58) + event('DELETED', 'b', 59) + event('ADDED', 'c', 60),
  )
  t.equal(told.length, 3, 'they are passed on')
  t.strictSame(['a', 'b'].map(cache.object), [undefined, '59'])
})

void t.test('a deletion that is not recorded takes an older record too', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const pod = (name: string): string => `/api/v1/namespaces/default/pods/${name}`
  await cache.list(pods, page(50, { a: 40, b: 45 }))
  await cache.list(pod('c'), singlePod('c', 55))
  const deleted = ['a', 'b', 'c', 'd'].map((name) => event('DELETED', name, 58))
  await cache.list(pod('d'), singlePod('d', 60))
  await cache.list(`${pods}?watch=1&resourceVersion=57`, ...deleted)
  t.strictSame(['a', 'b', 'c', 'd'].map(cache.object), [undefined, undefined, 'absent', '60'])
  t.strictSame(cache.names(), ['a at 40', 'b at 45'], 'the list stays as it was sent')
})

for (const [what, from] of [
  ['repeated', 49],
  ['not recorded', 61],
] as const) {
  void t.test(`a deletion that is ${what} takes a record that is being written`, async (t) => {
    await using cache = await recordingIn(t.testdir())
    const selected = `${pods}?labelSelector=app%3Dx`
    await cache.list(selected, page(60, {}))
    const busy = cache.occupyWriter()
    const writing = cache.list('/api/v1/namespaces/default/pods/a', singlePod('a', 50))
    const deleted = event('DELETED', 'a', from + 9)
    await cache.list(`${selected}&watch=1&resourceVersion=${from}`, deleted)
    await Promise.all([busy, writing])
    t.equal(cache.object('a'), undefined)
  })
}

void t.test('a repeated deletion takes no record of a cluster restored since', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const selected = `${pods}?labelSelector=app%3Dx`
  await cache.list(selected, page(2000, { b: 1999 }))
  const begun = Promise.withResolvers<Parameters<ByteSource>[0]>()
  const events = await cache.watch(`${selected}&watch=1&resourceVersion=1500`, (sink) => {
    begun.resolve(sink)
    sink.write(Buffer.from(event('ADDED', 'c', 1550)))
    return () => undefined
  })
  const watch = events[Symbol.asyncIterator]()
  t.match(await watch.next(), { value: [{ type: 'ADDED' }] })
  await cache.list(selected, page(1000, { a: 900 }))
  await cache.list('/api/v1/namespaces/default/pods/a', singlePod('a', 900))
  const sink = await begun.promise
  sink.write(Buffer.from(event('DELETED', 'a', 1600)))
  t.match(await watch.next(), { value: [{ type: 'DELETED' }] })
  t.equal(cache.object('a'), '900')
  await watch.return?.()
})

void t.test('nor does one of a watch that is not recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(2000, {}))
  const begun = Promise.withResolvers<Parameters<ByteSource>[0]>()
  const events = await cache.watch(`${pods}?watch=1&resourceVersion=2500`, (sink) => {
    begun.resolve(sink)
    sink.write(Buffer.from(event('ADDED', 'c', 2550)))
    return () => undefined
  })
  const watch = events[Symbol.asyncIterator]()
  t.match(await watch.next(), { value: [{ type: 'ADDED' }] })
  await cache.list(pods, page(1000, { a: 900 }))
  const sink = await begun.promise
  sink.write(Buffer.from(event('DELETED', 'a', 2600)))
  t.match(await watch.next(), { value: [{ type: 'DELETED' }] })
  t.equal(cache.object('a'), '900')
  await watch.return?.()
})

void t.test(
  'a watch of a cluster that was restored since does not go on with its list',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90, b: 91 }))
    const exchange = exchangeOf(`${pods}?watch=1&resourceVersion=95`, {
      headers: { Accept: 'application/json' },
    })
    const what = cache.recorder.plan(exchange)
    if (!what) throw new Error('it is not recorded')
    let tell: (text: string) => void = () => undefined
    const reply = await cache.recorder.record(what, exchange, {
      kind: 'bytes',
      status: 200,
      headers: new HeaderList(['Content-Type', 'application/json']),
      from: 'cloud',
      source: (sink) => {
        tell = (text) => void sink.write(Buffer.from(text))
        return () => undefined
      },
    })
    if (reply.kind !== 'watch') throw new Error('it is no watch')
    const events = reply.events[Symbol.asyncIterator]()
    const told = events.next()
    await cache.list(pods, page(20, { a: 19 }))
    tell(event('ADDED', 'c', 96))
    t.notOk((await told).done, 'it is passed on')
    t.strictSame([cache.version(), cache.names()], ['20', ['a at 19']])
    await events.return?.()
  },
)

void t.test('a watch whose stream breaks ends cleanly, with its events stored', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90 }))
  const broken = failingSource(event('MODIFIED', 'a', 101), new Error('reset by peer'))
  const groups = await Array.fromAsync(
    await cache.watch(`${pods}?watch=1&resourceVersion=95`, broken),
  )
  t.equal(groups.flat().length, 1)
  t.strictSame([cache.version(), cache.names()], ['101', ['a at 101']])
})

void t.test('a watch that a programming error ends is a break', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const broken = failingSource(event('ADDED', 'a', 101), new TypeError('x is not a function'))
  const events = await cache.watch(`${pods}?watch=1&resourceVersion=95`, broken)
  await t.rejects(Array.fromAsync(events), TypeError)
})
