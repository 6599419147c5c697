import { lengthOf } from '../../base/bytes.ts'
import type { ListBatch, ListEnd, ListStream } from '../../api/codec/list.ts'
import type { DecodedChunk, DecodedListEnd, ListDecoder } from '../../api/codec/list-decoder.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import { resourceVersion } from '../../api/kube/resource-version.ts'
import type { CollectionKey, ObjectStore, Replacement } from '../store/store.ts'
import type { ReplayableBody } from './replayable-body.ts'
import type { RecorderHooks } from './recordable.ts'

interface RecordedListParts {
  readonly head: NonNullable<DecodedChunk['head']>
  readonly cutter: ListDecoder
  /** The batches that were decoded before the head was complete. */
  readonly started: readonly ListBatch[]
  readonly replayable: ReplayableBody
  readonly key: CollectionKey
  /** As in a `CollectionHead`. */
  readonly storedBefore: string | undefined
  readonly store: ObjectStore
  readonly hooks: RecorderHooks
  readonly exchange: Exchange
}

/**
 * A list that is staged batch by batch as it passes to the client. Its end is released only after
 * the commit. The first page of a longer list is not committed.
 */
export class RecordedList implements ListStream {
  readonly gvk: GVK
  readonly head: readonly Uint8Array[]
  readonly batches: AsyncIterable<ListBatch>
  readonly #parts: RecordedListParts
  #replacement: Replacement | undefined
  #cut: DecodedListEnd | undefined
  #ended: Promise<ListEnd> | undefined

  constructor(parts: RecordedListParts) {
    this.gvk = parts.head.gvk
    this.head = parts.head.bytes
    this.#parts = parts
    this.batches = this.#cutting()
  }

  async *#cutting(): AsyncGenerator<ListBatch> {
    const { cutter, replayable, started } = this.#parts
    replayable.stopKeeping()
    replayable.gather(gatheredBytes)
    this.#replacement = this.#parts.store.replace(this.#parts.key)
    try {
      for (const batch of started) {
        await this.#stage(batch)
        yield batch
      }
      for await (const group of replayable.chunks) {
        for (const slice of slicesOf(group)) {
          const { batch } = cutter.push(slice)
          if (!batch) continue
          await this.#stage(batch)
          yield batch
        }
      }
      this.#cut = cutter.end()
    } catch (error) {
      if (error instanceof MalformedBody) this.#parts.hooks.onMalformed(error, this.#parts.exchange)
      throw error
    } finally {
      // A list that breaks off, at the API server or the client, must not replace a whole one.
      if (this.#cut === undefined) await this.#drop()
    }
  }

  async #stage(batch: ListBatch): Promise<void> {
    try {
      await this.#replacement?.add(batch)
    } catch (cause) {
      await this.#drop()
      this.#parts.hooks.onStoreFailure(cause)
    }
  }

  async #drop(): Promise<void> {
    const dropped = this.#replacement
    this.#replacement = undefined
    await dropped?.[Symbol.asyncDispose]()
  }

  /** Every call returns the same end. */
  end(): Promise<ListEnd> {
    return (this.#ended ??= this.#end())
  }

  async #end(): Promise<ListEnd> {
    if (this.#cut === undefined) throw new Error('a list has no end before its last batch')
    const { meta, extra, gvk } = this.#cut
    // Else nothing shows whether it is newer than what is stored.
    const isComparable = resourceVersion(meta.resourceVersion) !== undefined
    if (!isComparable || meta.continue !== '') await this.#drop()
    else await this.#commit(meta.resourceVersion, gvk, extra)
    return this.#cut
  }

  async #commit(version: string, gvk: GVK, extra: string): Promise<void> {
    if (this.#replacement === undefined) return
    try {
      const { storedBefore } = this.#parts
      await this.#replacement.commit({ gvk, resourceVersion: version, extra, storedBefore })
      this.#parts.hooks.countOf('list').amount++
    } catch (cause) {
      this.#parts.hooks.onStoreFailure(cause)
    } finally {
      await this.#drop()
    }
  }
}

/**
 * How much of a list is cut, staged and passed on at once: enough to make the layers' share small,
 * and still in the processor's cache. With what the slice before left over it is less than 64 KiB,
 * from which on malloc has pages for each buffer that the kernel clears first.
 */
const sliceBytes = 56 * 1024

/** With one more record of TLS still a slice. */
const gatheredBytes = 40 * 1024

/** The chunks in slices of much the same length. */
function* slicesOf(chunks: readonly Uint8Array[]): Generator<readonly Uint8Array[]> {
  const bytes = lengthOf(chunks)
  const each = bytes / Math.ceil(bytes / sliceBytes)
  let [slice, length]: [Uint8Array[], number] = [[], 0]
  for (const chunk of chunks) {
    slice.push(chunk)
    length += chunk.byteLength
    if (length < each) continue
    yield slice
    slice = []
    length = 0
  }
  if (slice.length > 0) yield slice
}
