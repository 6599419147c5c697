import t from 'tap'
import { event, page, pods, recordingIn } from './recording.ts'

const from = (version: number): string => `${pods}?watch=1&resourceVersion=${version}`

void t.test('a list that comes late does not undo newer state', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(100, { a: 90 }))
  const late = cache.ask(pods)
  await cache.list(from(100), event('ADDED', 'b', 106))
  await late.answer(page(101, { a: 90 }))
  t.equal(cache.version(), '106')
  await cache.list(from(106), event('ADDED', 'c', 107))
  t.strictSame(cache.names(), ['a at 90', 'b at 106', 'c at 107'], 'and nothing is missing')
  t.strictSame(cache.failures, [])
})

void t.test('a list requested before anything was stored does not undo newer state', async (t) => {
  await using cache = await recordingIn(t.testdir())
  const late = cache.ask(pods)
  await cache.list(pods, page(106, { b: 106 }))
  await late.answer(page(101, { a: 90 }))
  t.strictSame([cache.version(), cache.names()], ['106', ['b at 106']])
})

void t.test('a last page without a version does not undo newer state', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(100, { a: 90 }))
  await cache.list(`${pods}?limit=1`, page(101, { a: 90 }, 'next'))
  await cache.list(from(100), event('ADDED', 'c', 106))
  await cache.list(`${pods}?limit=1&continue=next`, page(101, { b: 91 }))
  t.strictSame([cache.version(), cache.names()], ['106', ['a at 90', 'c at 106']])
  await cache.list(`${pods}?limit=1&resourceVersion=0`, page(99, { a: 90 }, 'more'))
  await cache.list(`${pods}?limit=1&continue=more`, page(99, { b: 91 }))
  t.equal(cache.version(), '106', 'whatever its first page named holds for all')
})

void t.test(
  'an older list of a part is not stored where a wider collection answers for it',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(106, { a: 90 }))
    const selected = `${pods}?labelSelector=app%3Dx`
    const exactly = (version: number): Promise<unknown> =>
      cache.list(
        `${selected}&resourceVersion=${version}&resourceVersionMatch=Exact`,
        page(version, { a: 90 }),
      )
    const version = (): string | undefined =>
      cache.store.version({ ...cache.key, labelSelector: 'app=x' })
    await exactly(105)
    t.equal(version(), undefined)
    await exactly(106)
    t.equal(version(), '106')
  },
)

void t.test(
  'a part of a restored cluster is stored, though a wider collection is ahead',
  async (t) => {
    await using cache = await recordingIn(t.testdir())
    await cache.list(pods, page(106, { a: 90 }))
    await cache.list(`${pods}?labelSelector=app%3Dx`, page(10, { a: 9 }))
    t.equal(cache.store.version({ ...cache.key, labelSelector: 'app=x' }), '10')
  },
)

void t.test('the most recent list of a cluster that was restored counts', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(106, { a: 90, b: 106 }))
  await cache.list(`${pods}?resourceVersion=0`, page(101, { a: 90 }))
  t.equal(cache.version(), '106', 'any version may be an old one')
  const other = cache.ask(pods)
  await cache.list(pods, page(101, { a: 90 }))
  t.strictSame([cache.version(), cache.names()], ['101', ['a at 90']])
  await other.answer(page(100, {}))
  t.equal(cache.version(), '101', 'once')
})

void t.test('an event of a watch begun before the restore is not stored', async (t) => {
  await using cache = await recordingIn(t.testdir())
  await cache.list(pods, page(106, { a: 90 }))
  const { store, key } = cache
  await cache.list(pods, page(101, { a: 90 }))
  const object = { name: 'b', namespace: 'default', uid: 'b', resourceVersion: '107' }
  await store.apply(key, [{ type: 'ADDED', object: { ...object, bytes: Buffer.from('{}') } }], {
    since: '106',
  })
  t.strictSame([cache.version(), cache.names()], ['101', ['a at 90']])
})
