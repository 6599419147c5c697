import { documentAt, putDocument } from '../../../src/hub/store/document.ts'
import { join } from 'node:path'
import { storedKey } from '../../../src/base/stored-key.ts'
import { RecordedReviews } from '../../../src/hub/answers/recorded-reviews.ts'
import { Recorder } from '../../../src/hub/cache/recorder.ts'
import { watchDecoder } from '../../../src/api/codec/watch-decoder.ts'
import type {
  ByteSource,
  BytesReply,
  Exchange,
  Reply,
} from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { collectionKey } from '../../../src/hub/answers/keys.ts'
import { openStore } from '../../../src/hub/store/log/open.ts'
import { listed } from '../../contracts/object-store.ts'
import { exchangeOf } from '../../kit/exchange.ts'

export const pods = '/api/v1/pods'

const metadata = (name: string, resourceVersion: number): object => ({
  metadata: {
    name,
    namespace: 'default',
    uid: `uid of ${name}`,
    resourceVersion: `${resourceVersion}`,
  },
})

/** A page of pods, by name and version. */
export const page = (
  resourceVersion: number,
  versions: Record<string, number>,
  token?: string,
): string =>
  JSON.stringify({
    kind: 'PodList',
    apiVersion: 'v1',
    metadata: { resourceVersion: `${resourceVersion}`, ...(token && { continue: token }) },
    items: Object.entries(versions).map(([name, version]) => metadata(name, version)),
  })

const singlePod = (name: string, version: number): string =>
  JSON.stringify({ kind: 'Pod', apiVersion: 'v1', ...metadata(name, version) })

export const event = (type: string, name: string, version: number): string =>
  `{"type":"${type}","object":${singlePod(name, version)}}\n`

/** The answer to a request; it comes when the test sends it. */
export interface Underway {
  answer: (...chunks: readonly string[]) => Promise<void>
  /** The answer as its client gets it, unread. */
  reply: (...chunks: readonly string[]) => Promise<Reply>
}

/**
 * A recorder of JSON, of lists and of the watches of cachers, before a store, without a cloud: what
 * is asked of it is answered by the test, when the test likes.
 */
export async function recordingIn(directory: string) {
  const store = await openStore({
    directory: join(directory, 'cache'),
    sealingKey: storedKey(join(directory, 'store.key')),
    report: () => undefined,
  })
  const failures: unknown[] = []
  const recorder = new Recorder(
    store,
    () => true,
    {
      countOf: () => ({ amount: 0 }),
      onStoreFailure: (cause) => failures.push(cause),
      onMalformed: (cause) => failures.push(cause),
      onEvent: () => undefined,
      onUnpacked: () => undefined,
    },
    new RecordedReviews(store, Buffer.alloc(32)),
  )
  const plain = exchangeOf(pods, { headers: { Accept: 'application/json' } })
  const [representation] = plain.representations
  if (!plain.info.isResource || !representation) throw new Error('pods are no collection')
  const key = collectionKey(plain, plain.info, representation)
  const asked = (exchange: Exchange): Underway => {
    const what = recorder.plan(exchange)
    if (!what) throw new Error(`${exchange.url} is not recorded`)
    const replyTo = (...chunks: readonly string[]): Promise<Reply> =>
      Promise.resolve(recorder.record(what, exchange, replyOf(chunks)))
    return {
      reply: replyTo,
      answer: async (...chunks) => {
        const reply = await replyTo(...chunks)
        if (reply.kind !== 'list') return
        for await (const batch of reply.list.batches) void batch
        await reply.list.end()
      },
    }
  }
  const ask = (url: string): Underway =>
    asked(exchangeOf(url, { headers: { Accept: 'application/json' } }))
  return {
    recorder,
    store,
    key,
    failures,
    ask,
    asked,
    /** Stores the events of a watch from a version, as a cacher does. */
    watch: async (since: string, body: string): Promise<void> => {
      const events = watchDecoder('json', 'object').push(Buffer.from(body))
      await store.apply(key, events, { since })
    },
    list: (url: string, ...chunks: readonly string[]) => ask(url).answer(...chunks),
    /** Keeps the writer busy, so that what is written next is not committed at once. */
    occupyWriter: (): Promise<void> =>
      putDocument(
        store,
        documentAt(plain.identity, '/large', 'text/plain'),
        'text/plain',
        Buffer.alloc(16 * 1024 * 1024),
      ),
    version: () => store.list(key)?.resourceVersion,
    /** The version at which a pod would be answered offline. */
    object: (name: string): string | undefined => {
      const found = store.get({ ...key, namespace: 'default', name })
      return typeof found === 'object' ? found.object.resourceVersion : found
    },
    names: () =>
      (listed(store, key) ?? []).map((text) => {
        const { metadata } = JSON.parse(text ?? '') as {
          metadata: { name: string; resourceVersion: string }
        }
        return `${metadata.name} at ${metadata.resourceVersion}`
      }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** An answer of these parts. */
export const sourceOf =
  (...chunks: readonly (string | Uint8Array)[]): ByteSource =>
  (sink) => {
    for (const chunk of chunks) sink.write(Buffer.from(chunk))
    sink.end()
    return () => undefined
  }

const replyOf = (chunks: readonly string[]): BytesReply => ({
  kind: 'bytes',
  status: 200,
  headers: new HeaderList(['Content-Type', 'application/json']),
  from: 'cloud',
  source: sourceOf(...chunks),
})
