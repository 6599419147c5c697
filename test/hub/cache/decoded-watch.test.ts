import t from 'tap'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { changed, object } from '../../contracts/object-store.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { failingSource } from '../../kit/failing-source.ts'
import { event, page, pods, recordingIn } from './recording.ts'

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
    t.equal(cache.store.version(cache.key), '101')
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
    await cache.store.drop()
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
