import t from 'tap'
import { UpstreamWatch, type UpstreamListener } from '../../../src/cache/shared/upstream-watch.ts'
import type { WatchEvent } from '../../../src/codec/watch.ts'
import { sourceOf } from '../../../src/exchange/chunks.ts'
import type { BytesReply, Exchange, Reply } from '../../../src/exchange/exchange.ts'
import { HeaderList } from '../../../src/exchange/headers.ts'
import { objectForm } from '../../../src/request/form.ts'
import { shared } from '../../../src/request/identity.ts'
import type { ObjectStore } from '../../../src/store/store.ts'
import { Condition } from '../../kit/condition.ts'
import { services } from '../../kit/cloud.ts'

// The clock's timers keep no process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))

const form = objectForm('json')
const key = {
  audience: { identity: shared, form: form.key },
  gvr: services,
  labelSelector: '',
  fieldSelector: '',
}

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

async function* once<T>(value: T, begun: () => void = () => undefined): AsyncGenerator<T> {
  begun()
  yield value
}

/**
 * A collection that the store has at 10, and a watch of it that tells what is `told`; what becomes
 * of that, until the watch is over.
 */
async function following(told: WatchEvent, stored: () => string): Promise<string[]> {
  const heard: string[] = []
  const condition = new Condition()
  const hears = (what: string): void => {
    heard.push(what)
    condition.changed()
  }
  const listener: UpstreamListener = {
    onListed: () => hears('listed'),
    onOpen: () => hears('open'),
    onEvents: (events) => hears(`events ${events.length}`),
    onLost: () => hears('lost'),
    onUnstored: () => hears('unstored'),
    onFailed: () => hears('failed'),
  }
  let asked = false
  const store = { version: () => (asked ? stored() : '10') } as unknown as ObjectStore
  const recorded = async ({ signal }: Exchange): Promise<Reply> => {
    signal.throwIfAborted()
    if (asked) {
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('over'))),
      )
    }
    return {
      kind: 'watch',
      from: 'cloud',
      status: 200,
      headers: new HeaderList([]),
      form: () => form,
      gvk: () => ({ group: '', version: 'v1', kind: 'Service' }),
      events: once([told], () => {
        asked = true
      }),
    }
  }
  const peeked = { metadata: { resourceVersion: '10' } }
  const unrecorded = async (): Promise<BytesReply> =>
    ({
      kind: 'bytes',
      from: 'cloud',
      status: 200,
      headers: new HeaderList([]),
      source: sourceOf(once([Buffer.from(JSON.stringify(peeked))])),
    }) as BytesReply
  const ending = new AbortController()
  const link = { online: () => true, changed: () => new AbortController().signal }
  const parts = { key, form, store, link, ways: { recorded, unrecorded } }
  const run = new UpstreamWatch(parts, listener).run(ending.signal)
  await condition.until(() => heard.includes('lost'))
  ending.abort()
  await run
  return heard.slice(0, heard.indexOf('lost') + 1)
}

void t.test('what could not be stored is told to nobody', async (t) => {
  t.strictSame(await following(added('11'), () => '10'), ['listed', 'open', 'unstored', 'lost'])
})

void t.test('what is past of what is stored is told to nobody', async (t) => {
  t.strictSame(await following(added('9'), () => '10'), ['listed', 'open', 'lost'])
})

void t.test('what is stored is told', async (t) => {
  t.strictSame(await following(added('11'), () => '11'), ['listed', 'open', 'events 1', 'lost'])
})
