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
  const prepare = Reflect.get(DatabaseSync.prototype, 'prepare') as DatabaseSync['prepare']
  const pageBytes = 2048
  /** Frames of the log after the last commit: within a transaction they cannot be read. */
  const written = new WeakMap<DatabaseSync, number>()
  const writeAgain = (db: DatabaseSync): void => {
    const frames = framesIn(db) - (written.get(db) ?? 0)
    db.exec(
      `CREATE TABLE IF NOT EXISTS planted (id INTEGER PRIMARY KEY, body BLOB);
       INSERT OR REPLACE INTO planted VALUES (1, randomblob(${Math.max(1, frames) * pageBytes}))`,
    )
    written.set(db, framesIn(db))
  }
  // The writer prepares what it begins and ends its transactions with.
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    const statement = prepare.call(this, sql, ...rest)
    if (sql !== 'COMMIT') return statement
    const run = statement.run.bind(statement)
    statement.run = () => {
      const outcome = run()
      writeAgain(this)
      return outcome
    }
    return statement
  }
}

/** How many pages the log holds. */
function framesIn(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log'] ?? 0)
}
