import t from 'tap'
import { mock } from 'node:test'
import { nextPageMs, PagedLists } from '../../../src/hub/cache/recorded-list.ts'
import { collectionKey } from '../../../src/hub/answers/keys.ts'
import type { CollectionKey, Replacement } from '../../../src/hub/store/store.ts'
import { bookmark } from '../../contracts/object-store.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { page, pods as allPods, recordingIn } from './recording.ts'
import { rootFolder } from '../../kit/root-folder.ts'

function keyOf(url: string, accept?: string): CollectionKey {
  const exchange = exchangeOf(url, accept === undefined ? {} : { headers: { Accept: accept } })
  const [representation] = exchange.representations
  if (!exchange.info.isResource || !representation) throw new Error(`${url} is no collection`)
  return collectionKey(exchange, exchange.info, representation)
}

/** A replacement of which only its end matters. */
function staged(): Replacement & { readonly dropped: () => boolean } {
  let dropped = false
  return {
    add: async () => undefined,
    commit: async () => undefined,
    dropped: () => dropped,
    [Symbol.asyncDispose]: async () => {
      dropped = true
    },
  }
}

const pods = keyOf('/api/v1/pods')

void t.test('a continue token leads to its staged list, once', async (t) => {
  const pages = new PagedLists()
  const replacement = staged()
  pages.put(pods, 'next', replacement)
  t.equal(pages.take(pods, 'next'), replacement)
  t.equal(pages.take(pods, 'next'), undefined)
  t.notOk(replacement.dropped())
})

void t.test('a token of another collection leads to no list', async (t) => {
  const pages = new PagedLists()
  pages.put(pods, 'next', staged())
  const others = [
    keyOf('/api/v1/services'),
    keyOf('/api/v1/namespaces/default/pods'),
    keyOf('/api/v1/pods?labelSelector=a'),
    keyOf('/api/v1/pods?fieldSelector=spec.nodeName%3Da'),
    keyOf('/api/v1/pods', 'application/vnd.kubernetes.protobuf'),
    {
      ...pods,
      partition: { ...pods.partition, identity: 'token:x' as typeof pods.partition.identity },
    },
  ]
  for (const other of others) t.equal(pages.take(other, 'next'), undefined)
  t.ok(pages.take(pods, 'next'))
})

void t.test('a staged list that a repeated page replaces is dropped', async (t) => {
  const pages = new PagedLists()
  const [first, second] = [staged(), staged()]
  pages.put(pods, 'next', first)
  pages.put(pods, 'next', second)
  t.ok(first.dropped())
  t.equal(pages.take(pods, 'next'), second)
})

void t.test('at most 64 lists wait for a page, and the oldest is dropped', async (t) => {
  const pages = new PagedLists()
  const waiting = Array.from({ length: 70 }, staged)
  for (const [i, replacement] of waiting.entries()) pages.put(pods, `next-${i}`, replacement)
  t.strictSame(
    waiting.map((each) => each.dropped()),
    waiting.map((_, i) => i < 70 - 64),
  )
})

void t.test('a list whose next page is not requested is dropped', async (t) => {
  let at = performance.now()
  t.capture(performance, 'now', () => at)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const tick = (ms: number): void => {
    at += ms
    mock.timers.tick(ms)
  }
  const pages = new PagedLists()
  const [old, young] = [staged(), staged()]
  pages.put(pods, 'old', old)
  tick(nextPageMs - 1)
  pages.put(pods, 'young', young)
  t.notOk(old.dropped())
  tick(2)
  t.ok(old.dropped())
  t.notOk(young.dropped())
})

void t.test('a further page without its first page is not recorded', async (t) => {
  await using cache = await recordingIn(rootFolder(t))
  await cache.list(allPods, page(95, { a: 90, b: 91 }))
  await cache.list(`${allPods}?continue=of-another`, page(99, { c: 98 }))
  t.strictSame([cache.version(), cache.names()], ['95', ['a at 90', 'b at 91']])
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
