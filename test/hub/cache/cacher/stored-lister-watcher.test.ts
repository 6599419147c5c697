import t from 'tap'
import type { WatchEvent } from '../../../../src/api/codec/watch.ts'
import { changed, object } from '../../../contracts/object-store.ts'
import { failingSource } from '../../../kit/failing-source.ts'
import { event, page, pods, recordingIn, sourceOf } from '../recording.ts'

/** All events of a watch. */
async function all(events: Promise<AsyncIterable<readonly WatchEvent[]>>): Promise<WatchEvent[]> {
  return (await Array.fromAsync(await events)).flat()
}

for (const compares of [true, false]) {
  const told = compares ? 'given where events are compared' : 'not read where they are not'
  void t.test(`the previous object of an event is ${told}`, async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90 }))
    const [change] = await all(cache.watch('95', sourceOf(event('MODIFIED', 'a', 101)), compares))
    const previous = change && 'previous' in change ? change.previous : undefined
    t.equal(previous?.resourceVersion, compares ? '90' : undefined)
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
    const shown = await all(cache.watch('95', sourceOf(event('MODIFIED', 'a', 101))))
    t.equal(shown.length, 1)
    t.equal(cache.store.version(cache.key), '101')
    await Promise.all([busy, writing])
  },
)

void t.test('a watch that begins after the stored version is not recorded', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90, b: 91 }))
  // What happened to them between 95 and 99 is not known here.
  const told = await all(cache.watch('99', sourceOf(event('ADDED', 'c', 101))))
  t.equal(told.length, 1, 'it is passed on')
  t.strictSame([cache.version(), cache.names()], ['95', ['a at 90', 'b at 91']])
})

void t.test(
  'a watch of a cluster that was restored since does not go on with its list',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(95, { a: 90, b: 91 }))
    let tell: (text: string) => void = () => undefined
    const reply = await cache.watch('95', (sink) => {
      tell = (text) => void sink.write(Buffer.from(text))
      return () => undefined
    })
    const events = reply[Symbol.asyncIterator]()
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
  t.equal((await all(cache.watch('95', broken))).length, 1)
  t.strictSame([cache.version(), cache.names()], ['101', ['a at 101']])
})

void t.test('an event that cannot be read is a break, and counted', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(95, { a: 90 }))
  await t.rejects(all(cache.watch('95', sourceOf('no event'))), { code: 'MALFORMED_BODY' })
  t.equal(cache.failures.length, 1)
})

void t.test('a watch that a programming error ends is a break', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const broken = failingSource(event('ADDED', 'a', 101), new TypeError('x is not a function'))
  await t.rejects(all(cache.watch('95', broken)), TypeError)
})
