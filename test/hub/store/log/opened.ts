import { documentAt } from '../../../../src/hub/store/document.ts'
import { join } from 'node:path'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import { storedKey } from '../../../../src/base/stored-key.ts'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import type { LogStore } from '../../../../src/hub/store/log/log-store.ts'
import { openStore } from '../../../../src/hub/store/log/open.ts'
import type { StoreOptions } from '../../../../src/hub/store/log/parts.ts'
import { collection, object } from '../../../contracts/object-store.ts'

/** What stores have reported; a test file that reads it empties it before each of its tests. */
export const faults: string[] = []

export const secrets = collection({ gvr: { group: '', version: 'v1', resource: 'secrets' } })
export const api = documentAt(nodeIdentity, '/api', '')

export const open = (directory: string, with_: Partial<StoreOptions> = {}): Promise<LogStore> =>
  openStore({
    directory: join(directory, 'cache'),
    sealingKey: with_.sealingKey ?? storedKey(join(directory, 'store.key')),
    report: (kind) => faults.push(kind),
    ...with_,
  })

export const pods = (count: number, version: number, size = 100): ApiObject[] =>
  Array.from({ length: count }, (_, index) =>
    object(`pod-${String(index).padStart(4, '0')}`, version + index, {
      bytes: Buffer.alloc(size, String(version)),
    }),
  )

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export const crasher = join(import.meta.dirname, '..', 'crash-child.ts')
