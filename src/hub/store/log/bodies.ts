import { LRUCache } from 'lru-cache'
import { crc32 } from 'node:zlib'
import type { ListBatch } from '../../../api/codec/list.ts'
import { ownBatch } from '../../../api/codec/render.ts'
import type { ApiObject } from '../../../api/kube/object.ts'
import { encodingOf } from '../../../api/request/representation.ts'
import { lengthOf } from '../../../base/bytes.ts'
import { StoreFailure } from '../store.ts'
import { tokenResource } from '../token-name.ts'
import { textOfScope, type ScopeKey } from '../state/address.ts'
import { failureOf, isOfDisk } from './faults.ts'
import { markOf, type Body, type Held, type ObjectMark } from '../state/held.ts'
import type { LogFolder } from './segments.ts'
import type { NewBody } from './write-path.ts'
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

/** Bodies that lie this close together are read at once. */
const closeBytes = 4 << 10
/**
 * Less than 64 KiB, from which on malloc has pages for each buffer that the kernel clears first
 * (see the Dockerfile): longer reads took twice the time.
 */
const mostAtOnce = 56 << 10

/**
 * Lists of 500 pods, one in JSON and one in protobuf. Of Secrets what was opened is kept: the key
 * that opens them is in memory, too.
 */
const keptBytes = 8 << 20
/** What an object that is kept takes besides its bytes. */
const bytesBeside = 512
/**
 * Where all that is full, so many lists have to read a batch before it takes others' place: lists
 * that are longer would push out themselves.
 */
const readsWhenFull = 8

/** A part of a list, as it was found undamaged: not of the buffer that was read, but a copy. */
interface KeptBatch extends Required<ListBatch> {
  readonly bodies: readonly Body[]
}

/** Reads bodies from the log, and prepares them for it. */
export class Bodies {
  /** What lists have read more than once, by the first body of each batch. */
  readonly #kept = new LRUCache<Body, KeptBatch>({
    maxSize: keptBytes,
    sizeCalculation: ({ objects, bytes }) => lengthOf(bytes) + objects.length * bytesBeside,
  })
  /** How many times lists have read a batch from the disk, by its first body. */
  readonly #reads = new WeakMap<Body, number>()
  readonly #folder: LogFolder
  readonly #seal: Seal
  readonly #onDamaged: (scope: ScopeKey, held: Held) => void

  constructor(folder: LogFolder, seal: Seal, onDamaged: (scope: ScopeKey, held: Held) => void) {
    this.#folder = folder
    this.#seal = seal
    this.#onDamaged = onDamaged
  }

  /** As it is to be stored, and a number that is equal for equal bytes. */
  stored(scope: ScopeKey, object: ApiObject): NewBody {
    const { bytes } = object
    if (!isSealed(scope)) return [bytes, crc32(bytes)]
    return [this.#seal.close(bytes, placeOf(scope, markOf(object))), this.#seal.digest(bytes)]
  }

  /** Whether the object is what is held, byte for byte. */
  isHeld(scope: ScopeKey, object: ApiObject, { version, uid, body }: Held): boolean {
    const { bytes } = object
    if (object.resourceVersion !== version || object.uid !== uid) return false
    if (!isSealed(scope)) return bytes.byteLength === body.length && crc32(bytes) === body.digest
    return this.#seal.digest(bytes) === body.digest
  }

  /**
   * The objects in the order given; `undefined` for a damaged one, which is reported. Throws a
   * `StoreFailure` where the disk cannot be read.
   */
  read(scope: ScopeKey, wanted: readonly Held[]): (ApiObject | undefined)[] {
    const found: (ApiObject | undefined)[] = []
    while (found.length < wanted.length) {
      const run = runFrom(wanted, found.length)
      const bytes = this.#bytesOf(run.map(({ body }) => body))
      for (const [index, held] of run.entries()) {
        const plain = bytes[index] && this.#opened(scope, held, bytes[index])
        if (!plain) this.#onDamaged(scope, held)
        const { namespace, name, uid, version: resourceVersion } = held
        found.push(plain && { namespace, name, uid, resourceVersion, bytes: plain })
      }
    }
    return found
  }

  /** All of them, a batch at a time. Throws a `StoreFailure` where one cannot be read. */
  *batches(scope: ScopeKey, wanted: Iterable<Held>): Generator<ListBatch> {
    const all = [...wanted]
    let at = 0
    for (let first = all[at]; first; first = all[at]) {
      const batch = this.#batch(scope, first.body, all.slice(at, at + batchEntries))
      yield batch
      at += batch.objects.length
    }
  }

  #batch(scope: ScopeKey, first: Body, wanted: readonly Held[]): ListBatch {
    const kept = this.#kept.get(first)
    if (kept?.bodies.every((body, at) => body === wanted[at]?.body)) return kept
    this.#kept.delete(first)
    // What is kept begins a batch of its own.
    const bytesOf = ({ body }: Held): number => (this.#kept.has(body) ? Infinity : body.length)
    const [held = []] = grouped(wanted, bytesOf, batchBytes)
    const objects = this.read(scope, held).filter((each) => each !== undefined)
    if (objects.length < held.length)
      throw new StoreFailure('an object of the list is damaged, or gone')
    const reads = (this.#reads.get(first) ?? 0) + 1
    this.#reads.set(first, reads)
    const hasRoom = this.#kept.calculatedSize + batchBytes <= keptBytes
    if (reads === 1 || (!hasRoom && reads % readsWhenFull !== 0)) return { objects }
    const encoding = encodingOf(scope.partition.representation)
    const batch = { bodies: held.map(({ body }) => body), ...ownBatch(encoding, objects) }
    this.#kept.set(first, batch)
    return batch
  }

  #opened(scope: ScopeKey, held: Held, bytes: Uint8Array): Uint8Array | undefined {
    if (!isSealed(scope)) return crc32(bytes) === held.body.digest ? bytes : undefined
    const { namespace, name, uid, version } = held
    return this.#seal.open(bytes, placeOf(scope, [namespace, name, uid, version]))
  }

  /** Of bodies that lie together. */
  #bytesOf(bodies: readonly Body[]): readonly (Uint8Array | undefined)[] {
    const [first, last] = [bodies[0], bodies.at(-1)]
    if (!first || !last) return []
    try {
      const { segment, offset: begin } = first
      const all = this.#folder.read(segment, begin, last.offset + last.length - begin)
      return bodies.map(({ offset, length }) =>
        all.subarray(offset - begin, offset - begin + length),
      )
    } catch (cause) {
      if (cause instanceof StoreFailure || isOfDisk(cause))
        throw failureOf('the store cannot be read', cause)
      if (bodies.length === 1) return [undefined]
      return bodies.flatMap((body) => this.#bytesOf([body]))
    }
  }
}

const placeOf = (scope: ScopeKey, mark: ObjectMark): string =>
  textOfScope(scope) + JSON.stringify(mark)

/** The longest run of bodies that lie together. */
function runFrom(wanted: readonly Held[], from: number): readonly Held[] {
  const begin = wanted[from]?.body.offset ?? 0
  let end = from + 1
  for (let body = wanted[from]?.body; body; end += 1) {
    const next = wanted[end]?.body
    if (next?.segment !== body.segment) break
    const gap = next.offset - body.offset - body.length
    if (gap < 0 || gap > closeBytes || next.offset + next.length - begin > mostAtOnce) break
    body = next
  }
  return wanted.slice(from, end)
}

/** The items in groups of so many bytes at most, or of one item. */
export function* grouped<Item>(
  items: Iterable<Item>,
  bytesOf: (item: Item) => number,
  mostBytes: number,
): Iterable<readonly Item[]> {
  let group: Item[] = []
  let sum = 0
  for (const item of items) {
    const bytes = bytesOf(item)
    if (group.length > 0 && sum + bytes > mostBytes) {
      yield group
      group = []
      sum = 0
    }
    group.push(item)
    sum += bytes
  }
  if (group.length > 0) yield group
}

/** Bytes read at once: they block the event loop. */
export const batchBytes = 112 << 10
/** Entries of a batch: many small ones are work, too. */
const batchEntries = 512

const algorithm = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

/**
 * Encrypts bytes that must not be on a disk in the clear. Sealed bytes open only as what they were
 * sealed as, the version of an object in its scope, and unchanged.
 */
export class Seal {
  readonly #key: Uint8Array

  /** `key` has 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key
  }

  close(plain: Uint8Array, place: string): Buffer {
    const nonce = randomBytes(nonceLength)
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagLength })
    cipher.setAAD(Buffer.from(place))
    const sealed = cipher.update(plain)
    return Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()])
  }

  /** `undefined`: sealed with another key or for another place, or damaged. */
  open(sealed: Uint8Array, place: string): Buffer | undefined {
    if (sealed.byteLength < nonceLength + tagLength) return undefined
    const end = sealed.byteLength - tagLength
    const nonce = sealed.subarray(0, nonceLength)
    const decipher = createDecipheriv(algorithm, this.#key, nonce, { authTagLength: tagLength })
    decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(end))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(nonceLength, end)), decipher.final()])
    } catch {
      return undefined
    }
  }

  /** Equal for equal bytes, and tells nothing of them without the key. */
  digest(plain: Uint8Array): number {
    return createHmac('sha256', this.#key).update(plain).digest().readUInt32LE()
  }
}

/** Secrets, also in Tables of them (`secrets/table`), and tokens of service accounts. */
const isSealed = ({ gvr: { group, resource } }: ScopeKey): boolean =>
  group === '' && (/^secrets(\/|$)/.test(resource) || resource === tokenResource.resource)
