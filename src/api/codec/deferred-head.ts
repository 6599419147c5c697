import { lengthOf } from '../../base/bytes.ts'
import type { ApiObject } from '../kube/object.ts'
import type { DecodedChunk, ListHead } from './decoder.ts'
import { maxObjectBytes, MalformedBody } from './malformed-body.ts'

/** Holds back the head and first batches of a list until its kind is known. */
export class DeferredHead {
  readonly #between: Uint8Array | undefined
  #sent = false
  #objects: ApiObject[] = []
  #bytes: Uint8Array[] = []

  /** `between`: the separator between the bytes of two batches. */
  constructor(between?: Uint8Array) {
    this.#between = between
  }

  get sent(): boolean {
    return this.#sent
  }

  get first(): ApiObject | undefined {
    return this.#objects[0]
  }

  /** Adds complete objects. Returns them, with those held back, once `head` is known. */
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
