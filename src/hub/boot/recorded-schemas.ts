import { createHash } from 'node:crypto'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import { asBuffer } from '../../base/bytes.ts'
import { parseJson } from '../../api/kube/json.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { documentTypesOf } from '../../api/request/document-type.ts'
import type { KubeletCache } from './kubelet-cache.ts'
import { describedGroups, schemaIndex } from './on-site-documents.ts'
import type { DocumentRequest } from './refresh.ts'

/** As `kubectl explain` reads a group's schema, and as `create` and `apply` do to validate. */
const schemaTypes = [
  mediaType('json'),
  'application/com.github.proto-openapi.spec.v3@v1.0+protobuf',
] as const

/** The bytes of schemas in the store beyond which the hub requests no further one. */
export const mostSchemaBytes = 24 * 1024 * 1024

/** The share of the store that they may take, where that is less. */
export const schemaShare = 1 / 16

/** The most groups whose schemas are recorded, with their versions. */
export const mostSchemas = 128

/** A group and its version in the index: paths below these describe discovery only. */
const described = /^(?:api|apis\/[\w.-]+)\/v[\w]+$/

/** A schema as it was recorded. */
interface RecordedSchema {
  /** Identifies the version that the index named. */
  readonly version: string
  readonly bytes: number
}

interface IndexedGroup {
  /** Path and query. */
  readonly url: string
  /** '': the API server does not tell versions apart. */
  readonly version: string
}

/**
 * The schemas of all groups, in OpenAPI 3, by the API server's index. The index has a hash of each,
 * and the hub does not request a schema again that it has recorded with that hash. The groups that
 * are looked at most come first. Which hash each was recorded with is in `file`. Disposing waits
 * until that is written.
 */
export class RecordedSchemas implements AsyncDisposable {
  readonly #file: StateFile
  readonly #mostBytes: number
  readonly #onFailure: (cause: unknown) => void
  readonly #recorded: Map<string, RecordedSchema>
  #index: { readonly confirmedAt: number; readonly groups: readonly IndexedGroup[] } | undefined

  /** `onFailure`: the file could not be written. */
  constructor(file: string, cacheMaxBytes: number, onFailure: (cause: unknown) => void) {
    this.#file = new StateFile(file, () => JSON.stringify([...this.#recorded]))
    this.#recorded = new Map(storedEntries(file, isEntry))
    this.#mostBytes = Math.min(mostSchemaBytes, cacheMaxBytes * schemaShare)
    this.#onFailure = onFailure
  }

  /**
   * The schemas to keep: as many of them as there is room for. The hub does not know the size of a
   * schema before it has recorded it: it wants each until the recorded ones take all the room.
   */
  wanted(cache: KubeletCache): readonly DocumentRequest[] {
    const wanted: DocumentRequest[] = []
    const groups = this.#groups(cache)
    const hasRoom = this.#recordedBytes() < this.#mostBytes
    let bytes = 0
    for (const { url, version } of groups) {
      for (const accept of schemaTypes) {
        const recorded = this.#recorded.get(keyOf({ url, accept }))
        if (bytes >= this.#mostBytes) return wanted
        if (!recorded && !hasRoom) continue
        bytes += recorded?.bytes ?? 0
        wanted.push({ url, accept, schema: stateOf(version, recorded) })
      }
    }
    return wanted
  }

  /**
   * To be called after each document that an API server has given, to a request of `requestedAt`,
   * in milliseconds since the epoch.
   */
  confirmed(
    request: Pick<DocumentRequest, 'url' | 'accept'>,
    requestedAt: number,
    cache: KubeletCache,
  ): void {
    if (!request.url.startsWith(`${schemaIndex}/`)) return
    const types: readonly string[] = documentTypesOf(request.accept)
    const path = pathOf(request.url)
    // The store may have had no room for it, and may still hold an earlier version.
    const stored = cache
      .documents()
      .find(
        ({ url, accept, confirmedAt }) =>
          url === path && types.includes(accept) && confirmedAt >= requestedAt,
      )
    const body = stored && cache.document(stored)
    if (!body) return
    const version = versionIn(request.url)
    this.#recorded.set(keyOf(request), { version, bytes: body.byteLength })
    this.#write()
  }

  #recordedBytes(): number {
    return [...this.#recorded.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #groups(cache: KubeletCache): readonly IndexedGroup[] {
    const stored = cache.documents().find(({ url }) => url === schemaIndex)
    if (!stored) return []
    if (this.#index?.confirmedAt === stored.confirmedAt) return this.#index.groups
    const body = cache.document(stored)
    const groups = body ? groupsIn(body) : []
    this.#index = { confirmedAt: stored.confirmedAt, groups }
    this.#forgetOthers(groups)
    return groups
  }

  #forgetOthers(groups: readonly IndexedGroup[]): void {
    const kept = new Set(
      groups.flatMap(({ url }) => schemaTypes.map((accept) => keyOf({ url, accept }))),
    )
    const others = [...this.#recorded.keys()].filter((key) => !kept.has(key))
    for (const key of others) this.#recorded.delete(key)
    if (others.length > 0) this.#write()
  }

  #write(): void {
    void this.#file.write().catch(this.#onFailure)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

function stateOf(
  version: string,
  recorded: RecordedSchema | undefined,
): NonNullable<DocumentRequest['schema']> {
  if (version === '') return 'unversioned'
  return recorded?.version === version ? 'current' : 'outdated'
}

const keyOf = ({ url, accept }: Pick<DocumentRequest, 'url' | 'accept'>): string =>
  `${pathOf(url)} ${accept}`

const pathOf = (url: string): string => url.split('?', 1)[0] ?? ''

/** Short: the hash of an API server is as long as a path. */
function versionIn(url: string): string {
  const hash = new URLSearchParams(url.slice(pathOf(url).length)).get('hash') ?? ''
  return hash === '' ? '' : createHash('sha256').update(hash).digest('base64url').slice(0, 22)
}

function groupsIn(index: Uint8Array): readonly IndexedGroup[] {
  const paths = objectAt(parseJson(asBuffer(index).toString()), 'paths')
  const names = Object.keys(paths).filter((name) => described.test(name))
  const first = describedGroups.filter((name) => names.includes(name))
  return [...new Set([...first, ...names.toSorted()])].slice(0, mostSchemas).flatMap((name) => {
    const url = textAt(paths, name, 'serverRelativeURL')
    const isOwn = pathOf(url) === `${schemaIndex}/${name}`
    return isOwn ? [{ url, version: versionIn(url) }] : []
  })
}

function isEntry(entry: unknown): entry is [string, RecordedSchema] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false
  const { version, bytes } = (entry[1] ?? {}) as Partial<RecordedSchema>
  return typeof version === 'string' && typeof bytes === 'number'
}
