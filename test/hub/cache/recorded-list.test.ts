import t from 'tap'
import { bookmark } from '../../contracts/object-store.ts'
import { page, pods as allPods, recordingIn } from './recording.ts'
import { rootFolder } from '../../kit/root-folder.ts'

void t.test('the first page of a longer list is not recorded', async (t) => {
  await using cache = await recordingIn(rootFolder(t))
  await cache.list(allPods, page(95, { a: 90, b: 91 }))
  await cache.list(`${allPods}?limit=1`, page(99, { c: 98 }, 'next'))
  t.strictSame([cache.version(), cache.names()], ['95', ['a at 90', 'b at 91']])
  await cache.list(`${allPods}?limit=2`, page(100, { c: 98 }))
  t.strictSame([cache.version(), cache.names()], ['100', ['c at 98']])
})

void t.test(
  'a list that is older than what is being written ends once that is stored',
  async (t) => {
    await using cache = await recordingIn(rootFolder(t))
    await cache.list(allPods, page(95, { a: 90 }))
    const reply = await cache.ask(`${allPods}?resourceVersion=0`).reply(page(101, { a: 90 }))
    if (reply.kind !== 'list') throw new Error('a list was answered otherwise')
    for await (const _ of reply.list.batches);
    const busy = cache.occupyWriter()
    const writing = cache.store.apply(cache.key, [bookmark(105)])
    await reply.list.end()
    t.equal(cache.store.version(cache.key), '105')
    await Promise.all([busy, writing])
  },
)

void t.test(
  'a consistent list that is older than what was stored before replaces it',
  async (t) => {
    await using cache = await recordingIn(rootFolder(t))
    await cache.list(allPods, page(95, { a: 90, b: 91 }))
    await cache.list(`${allPods}?resourceVersion=0`, page(20, { a: 19 }))
    t.equal(cache.version(), '95', 'one of any age may be of an API server that lags')
    const asked = cache.ask(allPods)
    await cache.list(`${allPods}?resourceVersion=0`, page(101, { a: 100 }))
    await asked.answer(page(96, { a: 90 }))
    t.equal(cache.version(), '101', 'what came while it was read stays')
    await cache.list(allPods, page(20, { a: 19 }))
    t.strictSame([cache.version(), cache.names()], ['20', ['a at 19']])
  },
)
