// The hub with a fault: the log of its store is written twice, at least.
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { isMainThread, Worker } from 'node:worker_threads'

if (isMainThread) {
  const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker }
  // Each thread of the hub begins with this file, for the one that writes.
  threads.Worker = class extends Worker {
    constructor(...[file, options]: ConstructorParameters<typeof Worker>) {
      super(file, { ...options, execArgv: [`--import=${import.meta.filename}`] })
    }
  }
  syncBuiltinESMExports()
  await import('../../src/main.ts')
} else {
  const exec = Reflect.get(DatabaseSync.prototype, 'exec') as (sql: string) => void
  const pageBytes = 2048
  /** Frames of the log after the last commit: within a transaction they cannot be read. */
  const written = new WeakMap<DatabaseSync, number>()
  DatabaseSync.prototype.exec = function (sql) {
    exec.call(this, sql)
    if (sql !== 'COMMIT') return
    const frames = framesIn(this) - (written.get(this) ?? 0)
    exec.call(
      this,
      `CREATE TABLE IF NOT EXISTS planted (id INTEGER PRIMARY KEY, body BLOB);
       INSERT OR REPLACE INTO planted VALUES (1, randomblob(${Math.max(1, frames) * pageBytes}))`,
    )
    written.set(this, framesIn(this))
  }
}

/** How many pages the log holds. */
function framesIn(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log'] ?? 0)
}
