import { join } from 'node:path'
import { makeSyncedFolder } from '../../src/base/folder.ts'
import { storedKey } from '../../src/base/stored-key.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { documentAt } from '../../src/hub/store/document.ts'
import type { CollectionKey, ObjectStore } from '../../src/hub/store/store.ts'
import { collection, got, keyOf, object, objectsOf } from '../contracts/object-store.ts'

/** The content of the stored secrets, which no file may contain. */
export const plain = 'cGFzc3dvcmQ6IGh1bnRlcjI='

const core = (resource: string) => ({ group: '', version: 'v1', resource })

/** Lists that are replaced and followed, by name. The first two share what they hold. */
export const collections: Readonly<Record<string, CollectionKey>> = {
  pods: collection(),
  some: collection({ labelSelector: 'app=some' }),
  secrets: collection({ gvr: core('secrets') }),
}
export const single = keyOf('settings', { gvr: core('configmaps') })
export const document = documentAt('node' as never, '/version', '')

/**
 * What outlives a power cut from now on: nothing more, this state of this register, or all that was
 * done before, too.
 */
export type Outlives = 'nothing' | 'itself' | 'all'

/** A line of the log: a state is about to be written, or was written. */
export type WorkloadLine =
  | { readonly begin: string; readonly state: string }
  | { readonly done: string; readonly outlives: Outlives }
  | { readonly failed: string }
  /** The store knows that the disk refused something. */
  | { readonly noticed: true }
  /** A sync came by itself: all that was done outlives a power cut. */
  | { readonly synced: true }

/** Every byte identifies the object and the version. */
export const bodyOf = (name: string, version: number, size: number): ApiObject =>
  object(name, version, {
    bytes: Buffer.alloc(
      size,
      `${name.startsWith('of-secrets') ? plain : ''} ${name} at ${version} `,
    ),
  })

/**
 * The stored state of each register in one line, or 'none'. Throws where an object is not what was
 * once stored under its name.
 */
export function stateIn(store: ObjectStore, register: string): string {
  const key = collections[register]
  if (key) {
    const list = store.list(key)
    if (!list) return 'none'
    return stateOf(list.resourceVersion, objectsOf(list))
  }
  if (register === 'document') return got(store, document) ?? 'none'
  const found = store.get(single)
  return typeof found === 'object' ? stateOf('', [found.object]) : 'none'
}

export const stateOf = (version: string, objects: readonly ApiObject[]): string =>
  `${version}: ${objects.map(wordFor).sort().join(' ')}`

function wordFor({ name, resourceVersion, bytes }: ApiObject): string {
  const was = bodyOf(name, Number(resourceVersion), bytes.byteLength)
  if (Buffer.compare(was.bytes, bytes) !== 0)
    throw new Error(`${name} at ${resourceVersion} holds other bytes`)
  return `${name}@${resourceVersion}/${bytes.byteLength}`
}

export const registers = [...Object.keys(collections), 'single', 'document']

/**
 * Where the store lies, in folders that it makes itself, and its key, which is made as the hub
 * makes it.
 */
export function storePaths(folder: string): { directory: string; sealingKey: Uint8Array } {
  const state = join(folder, 'state')
  makeSyncedFolder(state, 0o700)
  return { directory: join(state, 'cache'), sealingKey: storedKey(join(state, 'store.key')) }
}
