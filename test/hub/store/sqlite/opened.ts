import type { Test } from 'tap'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import { storedKey } from '../../../../src/base/stored-key.ts'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import { openStore, type StoreOptions } from '../../../../src/hub/store/sqlite/open.ts'
import type { SqliteStore } from '../../../../src/hub/store/sqlite/sqlite-store.ts'
import { object } from '../../../contracts/object-store.ts'

/** What stores reported. */
export const faults: string[] = []

export const open = (directory: string, with_: Partial<StoreOptions> = {}): Promise<SqliteStore> =>
  openStore({
    directory: join(directory, 'cache'),
    sealingKey: with_.sealingKey ?? storedKey(join(directory, 'store.key')),
    report: (kind) => faults.push(kind),
    ...with_,
  })

export const fileOf = (directory: string): string => join(directory, 'cache', 'objects.db')

/**
 * What the log comes to at most as long as no other process reads it, as
 * docs/limits-beyond-clients.md has it.
 */
export const maxLogBytes = 24 << 20

/** A connection of the test's own, to look at what lies in the file, or to damage it. */
export const database = (directory: string): DatabaseSync =>
  new DatabaseSync(fileOf(directory), { timeout: 5000 })

export const count = (db: DatabaseSync, table: string): number =>
  Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])

/** Changes when, and only when, another connection has committed. */
export const dataVersion = (db: DatabaseSync): unknown => db.prepare('PRAGMA data_version').get()

export const pods = (count: number, version: number, size = 100): ApiObject[] =>
  Array.from({ length: count }, (_, index) =>
    object(`pod-${String(index).padStart(4, '0')}`, version + index, {
      bytes: Buffer.alloc(size, String(version)),
    }),
  )

/** Bodies with a reference. */
export const referencedBodies = `(SELECT body FROM member UNION SELECT body FROM single UNION SELECT body FROM staged
  UNION SELECT body FROM told UNION SELECT previous_body FROM told WHERE previous_body IS NOT NULL)`

/** Makes every write of an object with this name fail, until it is dropped. */
export const refusing = (db: DatabaseSync, name: string): Disposable => {
  const tables = ['member', 'single', 'staged']
  for (const table of tables) {
    db.exec(`CREATE TRIGGER refuse_${table} BEFORE INSERT ON ${table} WHEN NEW.name = '${name}'
      BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  }
  return {
    [Symbol.dispose]: () => {
      for (const table of tables) db.exec(`DROP TRIGGER refuse_${table}`)
    },
  }
}

/** The threads of stores opened from here on, the newest last. */
export const writersOf = (t: Test): Worker[] => {
  const workers: Worker[] = []
  const note = (worker: Worker): unknown => workers.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  return workers
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export const crasher = join(import.meta.dirname, '..', 'crash-child.ts')
