import type {
  CachedDocument,
  CachedObject,
  KubeletCache,
  CollectionQuery,
} from '../../../src/hub/boot/kubelet-cache.ts'
import { parseApiVersion, type GVK, type GVR } from '../../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import type { StoredMember } from '../../../src/hub/store/store.ts'
import { encoded } from './rich-pod.ts'

const nameIn = ({ gvr, namespace = '', fieldSelector = '' }: CollectionQuery): string =>
  JSON.stringify([gvr, namespace, fieldSelector])

/** What a store holds, said in a few words. */
export class FakeKubeletCache implements KubeletCache {
  readonly encodings: readonly Encoding[]
  readonly #collections = new Map<
    string,
    { gvk: GVK; confirmedAt: number; objects: ApiObject[] | Error }
  >()
  readonly #objects = new Map<string, CachedObject | 'absent'>()

  readonly cachedDocuments: CachedDocument[] = []
  /** Of documents, by their path. */
  readonly bodies = new Map<string, Uint8Array>()

  constructor(encoding: Encoding) {
    this.encodings = [encoding]
  }

  get #encoding(): Encoding {
    return this.encodings[0] ?? 'json'
  }

  list(
    query: CollectionQuery,
    kind: string,
    objects: readonly JsonObject[] | Error,
    confirmedAt = 0,
  ): this {
    const { group, version } = query.gvr
    const gvk = { group, version, kind }
    const held =
      objects instanceof Error
        ? objects
        : objects.map((each) => encoded(this.#encoding, gvk, each).object)
    this.#collections.set(nameIn(query), { gvk, confirmedAt, objects: held })
    return this
  }

  put(gvr: GVR, namespace: string, name: string, known: JsonObject | 'absent'): this {
    const object = known === 'absent' ? known : this.#read(known)
    this.#objects.set(JSON.stringify([gvr, namespace, name]), object)
    return this
  }

  #read(object: JsonObject): CachedObject {
    const { apiVersion, kind } = object as { apiVersion: string; kind: string }
    const gvk = { ...parseApiVersion(apiVersion), kind }
    return { ...encoded(this.#encoding, gvk, object), confirmedAt: 0 }
  }

  documents(): readonly CachedDocument[] {
    return this.cachedDocuments
  }

  document({ url }: Pick<CachedDocument, 'url' | 'accept'>): Uint8Array | undefined {
    return this.bodies.get(url)
  }

  forget(gvr: GVR, namespace: string, name: string): void {
    this.#objects.delete(JSON.stringify([gvr, namespace, name]))
  }

  forgetList(query: CollectionQuery): void {
    this.#collections.delete(nameIn(query))
  }

  collection(query: CollectionQuery, isRead?: (member: StoredMember) => boolean) {
    const { gvr } = query
    const found = this.#collections.get(nameIn(query)) ?? this.#collections.get(nameIn({ gvr }))
    if (!found) return undefined
    const { objects } = found
    const isWanted = (object: ApiObject): boolean =>
      isRead?.({ ...object, version: object.resourceVersion }) ?? true
    // All are chosen before one is read.
    const wanted = objects instanceof Error ? objects : [...objects].filter(isWanted)
    const read = function* (): Generator<ApiObject> {
      if (wanted instanceof Error) throw wanted
      yield* wanted
    }
    return { encoding: this.#encoding, ...found, objects: read() }
  }

  object(gvr: GVR, namespace: string, name: string): CachedObject | 'absent' | undefined {
    return this.#objects.get(JSON.stringify([gvr, namespace, name]))
  }
}
