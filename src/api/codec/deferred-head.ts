import { lengthOf } from '../../base/bytes.ts'
import type { ApiObject } from '../kube/object.ts'
import type { DecodedChunk, ListHead } from './decoder.ts'
import { maxObjectBytes, MalformedBody } from './malformed-body.ts'

/**
 * Keeps the first batches of a list back until its kind is known, and hands the head out with them.
 */
export class DeferredHead {
  readonly #between: Uint8Array | undefined
  #sent = false
  #objects: ApiObject[] = []
  #bytes: Uint8Array[] = []

  /** `between`: what belongs between the bytes of two batches. */
  constructor(between?: Uint8Array) {
    this.#between = between
  }

  get sent(): boolean {
    return this.#sent
  }

  get first(): ApiObject | undefined {
    return this.#objects[0]
  }

  /** Takes the objects that became whole; hands them out if `head` is known, now or before. */
  cut(objects: ApiObject[], bytes: Uint8Array[], head: ListHead | undefined): DecodedChunk {
    if (this.#sent) return objects.length === 0 ? {} : { batch: { objects, bytes } }
    const batch = this.#withThoseBefore(objects, bytes)
    if (head === undefined) {
      if (lengthOf(batch.bytes) > maxObjectBytes) {
        throw new MalformedBody('a list that says its kind too late')
      }
      this.#objects = batch.objects
      this.#bytes = batch.bytes
      return {}
    }
    this.#sent = true
    this.#objects = []
    this.#bytes = []
    return batch.objects.length === 0 ? { head } : { head, batch }
  }

  #withThoseBefore(objects: ApiObject[], bytes: Uint8Array[]) {
    if (this.#objects.length === 0) return { objects, bytes }
    if (objects.length === 0) return { objects: this.#objects, bytes: this.#bytes }
    const between = this.#between ? [this.#between] : []
    return {
      objects: this.#objects.concat(objects),
      bytes: [...this.#bytes, ...between, ...bytes],
    }
  }
}
