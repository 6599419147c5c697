import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { after, elapsed } from '../../../base/clock.ts'
import { DiskMeter } from './disk-work.ts'
import { outlivesPowerCut } from './durability.ts'
import { LateSync } from './late-sync.ts'
import type {
  GroupDone,
  OperationGroup,
  WriterOpened,
  Operation,
  OperationOutcome,
  WriterOptions,
} from './messages.ts'
import { Objects } from './objects.ts'
import { LaterSchema, migrate, UnknownSchema } from './schema.ts'
import { Seal } from './seal.ts'
import { secureDelete, usualDeletion } from './secure-delete.ts'
import { cleanUp } from './startup-cleanup.ts'
import { checkpointBytes } from './log-size.ts'
import { growthOf } from './quotas.ts'
import { prepare } from './statements.ts'
import { Operations } from './operations.ts'

/**
 * The writer thread. A commit that waits for a sync may take longer on a memory card than the main
 * thread may be blocked. Checkpoints run here, too, between groups.
 */

/** Bytes of the WAL that are worth a checkpoint in an idle moment. */
const idleCheckpointBytes = 4 << 20
/**
 * A WAL that is being read cannot be restarted, and grows. Reads of this process are short: the
 * writer waits for them, and no new ones use the WAL once it is copied. For longer reads of another
 * process it waits again after this many bytes more.
 */
const readersMs = 500
const retryBytes = 4 << 20
const idleAfter = 2000
/** How long other locks are waited for. */
const busyMs = 2000
/**
 * Small, as an event writes few bytes to most of its pages; with smaller ones a list is slow to
 * write.
 */
const pageSize = 2048
/** A frame in the WAL: a page and its header. */
const frameBytes = pageSize + 24

/** SQLite's codes for a file that is no database, or is damaged. */
const unusable = new Set([1, 11, 26])

class Writer {
  readonly #db: DatabaseSync
  readonly #disk: DiskMeter
  readonly #objects: Objects
  readonly #operations: Operations
  readonly #lateSync: LateSync
  readonly #sql
  #group = 0
  /** SQLite's count of changed rows after the last transaction. */
  #changed: unknown
  /** The WAL when it was last measured, and by how much it may have grown since. */
  #log = { size: 0, waiting: 0 }
  #mayHaveGrown = Infinity
  #settledAt = 0
  /** Size of the WAL at which a restart is tried again. */
  #retryAt = 0
  #durable = true
  /**
   * The WAL may have gaps that cannot be detected: pages that Linux fails to write in a sync count
   * as written afterwards (https://lwn.net/Articles/752063/), and an earlier process may have had
   * such a failure. Further commits could be lost with it, synced or not, until the whole WAL is in
   * the database and restarted.
   */
  #doubtful: boolean
  #idle: Disposable | undefined
  readonly resealed: boolean

  constructor({ path, sealingKey, maxBytes, diskWork, syncWithinMs }: WriterOptions) {
    this.#disk = new DiskMeter(diskWork, pageSize)
    this.#doubtful = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
    this.#db = new DatabaseSync(path, { timeout: busyMs })
    this.#db.exec(
      `PRAGMA page_size = ${pageSize}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
       PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${checkpointBytes};
       PRAGMA cache_size = -2000; ${usualDeletion}`,
    )
    const seal = new Seal(sealingKey)
    this.resealed = this.#disk.opening(() => {
      migrate(this.#db)
      return secureDelete(this.#db, () => cleanUp(this.#db, seal))
    })
    if (maxBytes !== undefined) {
      this.#db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageSize))}`)
    }
    this.#objects = new Objects(this.#db, seal)
    this.#operations = new Operations(this.#db, this.#objects, maxBytes ?? Infinity)
    this.#sql = {
      begin: prepare(this.#db, 'BEGIN IMMEDIATE'),
      commit: prepare(this.#db, 'COMMIT'),
      changes: prepare(this.#db, 'SELECT total_changes()'),
      log: prepare(this.#db, 'PRAGMA wal_checkpoint(NOOP)'),
    }
    this.#changed = this.#changes()
    this.#lateSync = new LateSync(`${path}-wal`, syncWithinMs, (log) => this.#syncLate(log))
    if (this.#doubtful) this.#lateSync.committed()
  }

  /**
   * Commits all operations together; when that fails, each alone, so that one that cannot be stored
   * affects no other.
   */
  run({ operations, sweepUpTo }: OperationGroup): GroupDone {
    this.#group += 1
    for (const operation of operations) this.#mayHaveGrown += growthOf(operation)
    let outcomes = this.#commit(operations, sweepUpTo)
    if (outcomes === undefined) {
      this.#giveRoom(sweepUpTo)
      const failed = new Set<string>()
      outcomes = operations.map((operation) => this.#alone(operation, failed))
    }
    const { unreferenced } = this.#objects
    return {
      outcomes,
      group: this.#group,
      unreferenced,
      isNearFull: this.#operations.isNearFull,
      overQuota: this.#beyondQuota(),
    }
  }

  #beyondQuota(): readonly string[] {
    try {
      return this.#operations.beyondQuota()
    } catch {
      // An unreadable database cannot be measured: the next write reports the fault.
      return []
    }
  }

  /** The disk may be full: deletes free rows first. */
  #giveRoom(sweepUpTo: number): void {
    try {
      this.#inTransaction(() => {
        this.#objects.sweep(sweepUpTo)
        this.#objects.shrink()
      })
    } catch {
      // Each write reports the fault.
    }
  }

  /** Refuses operations that depend on a failed one. */
  #alone(operation: Operation, failed: Set<string>): OperationOutcome {
    const dependsOn = dependencies(operation)
    if (dependsOn.some((text) => failed.has(text))) {
      return { ok: false, message: 'an earlier write failed' }
    }
    try {
      return this.#transaction([operation], 0)[0] ?? { ok: true }
    } catch (cause) {
      for (const text of dependsOn) failed.add(text)
      return refused(cause)
    }
  }

  #commit(
    operations: readonly Operation[],
    sweepUpTo: number,
  ): readonly OperationOutcome[] | undefined {
    try {
      return this.#transaction(operations, sweepUpTo)
    } catch {
      return undefined
    }
  }

  #transaction(operations: readonly Operation[], sweepUpTo: number): readonly OperationOutcome[] {
    this.#setDurable(operations.some(outlivesPowerCut))
    return this.#inTransaction(() => {
      this.#objects.sweep(sweepUpTo)
      return operations.map((operation): OperationOutcome => {
        if (operation.kind === 'evict') return { ok: true, step: this.#operations.evict(operation) }
        const displaced = this.#operations.carryOut(operation)
        return { ok: true, ...(displaced && { displaced }) }
      })
    })
  }

  #inTransaction<T>(act: () => T): T {
    if (this.#doubtful) this.#beginLogAnew()
    return this.#disk.transaction(this.#durable, () => {
      this.#sql.begin.run()
      try {
        const result = act()
        this.#sql.commit.run()
        const before = this.#changed
        this.#changed = this.#changes()
        // SQLite does not sync a commit without changes.
        if (this.#changed !== before) {
          if (this.#durable) this.#lateSync.synced()
          else this.#lateSync.committed()
        }
        this.#objects.committed(this.#group)
        return result
      } catch (cause) {
        this.#doubtful ||= isOfDisk(cause)
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
        this.#changed = this.#changes()
        this.#objects.rolledBack()
        this.#operations.rolledBack()
        throw cause
      }
    })
  }

  #changes(): unknown {
    return this.#sql.changes.get()?.[0]
  }

  #setDurable(durable: boolean): void {
    if (durable === this.#durable) return
    this.#db.exec(`PRAGMA synchronous = ${durable ? 'FULL' : 'NORMAL'}`)
    this.#durable = durable
  }

  /** Must be called after the answer was sent. */
  settle(): void {
    this.#settledAt = elapsed()
    const most = this.#mayHaveGrown
    const { size: known, waiting: left } = this.#log
    const mayRest = known + most < checkpointBytes && left + most < idleCheckpointBytes
    if (mayRest) return
    const { size, waiting } = this.#measureLog()
    if (size < checkpointBytes) this.#retryAt = 0
    if (size >= Math.max(checkpointBytes, this.#retryAt) && waiting > 0) this.#beginAnewIfFree()
    else if (waiting >= idleCheckpointBytes) this.#checkpointWhenIdle(idleAfter)
  }

  #checkpointWhenIdle(ms: number): void {
    this.#idle ??= after(ms, () => {
      this.#idle = undefined
      const left = this.#settledAt + idleAfter - elapsed()
      if (left > 0) this.#checkpointWhenIdle(left)
      else this.#checkpoint('PASSIVE')
    })
  }

  /** Bytes of the WAL, and of its part that is not in the database yet. */
  #measureLog(): { readonly size: number; readonly waiting: number } {
    try {
      const [, frames, copied] = this.#sql.log.get() ?? []
      const size = Number(frames) * frameBytes
      this.#log = { size, waiting: size - Number(copied) * frameBytes }
      this.#mayHaveGrown = 0
    } catch {
      // It is tried again after the next write.
      this.#log = { size: 0, waiting: 0 }
      this.#mayHaveGrown = Infinity
    }
    return this.#log
  }

  #beginAnewIfFree(): void {
    this.#db.exec(`PRAGMA busy_timeout = ${readersMs}`)
    this.#checkpoint('RESTART')
    this.#db.exec(`PRAGMA busy_timeout = ${busyMs}`)
    const { size, waiting } = this.#measureLog()
    this.#retryAt = waiting > 0 ? size + retryBytes : 0
  }

  #checkpoint(mode: 'PASSIVE' | 'RESTART' | 'TRUNCATE'): void {
    try {
      this.#setDurable(true)
      this.#disk.checkpoint(() => this.#db.exec(`PRAGMA wal_checkpoint(${mode})`))
    } catch (cause) {
      // The WAL still has everything; the next checkpoint tries again.
      this.#doubtful ||= isOfDisk(cause)
    }
  }

  /** Tries again later for as long as the disk refuses. */
  #syncLate(log: () => void): void {
    try {
      if (this.#doubtful) this.#beginLogAnew()
      else this.#disk.sync(log)
    } catch {
      this.#doubtful = true
      this.#lateSync.committed()
    }
  }

  /** Throws where it cannot be restarted: then nothing may be written. */
  #beginLogAnew(): void {
    this.#setDurable(true)
    const checkpoint = this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)')
    let isRead = true
    this.#disk.checkpoint(() => (isRead = checkpoint.get()?.['busy'] !== 0))
    if (isRead) throw new Error('the WAL is being read and cannot be restarted')
    this.#doubtful = false
    this.#lateSync.synced()
  }

  close(): void {
    this.#idle?.[Symbol.dispose]()
    this.#giveRoom(this.#group)
    this.#lateSync[Symbol.dispose]()
    this.#checkpoint('TRUNCATE')
    this.#db.close()
    this.#disk.close()
  }
}

function dependencies(operation: Operation): string[] {
  return [
    ...('replacement' in operation ? [`replacement ${operation.replacement}`] : []),
    ...('collection' in operation && operation.kind !== 'stage' && operation.kind !== 'invalidate'
      ? [JSON.stringify(operation.collection)]
      : []),
  ]
}

function refused(cause: unknown): OperationOutcome {
  const message = cause instanceof Error ? cause.message : String(cause)
  const errcode = errcodeOf(cause)
  return { ok: false, message, ...(errcode !== undefined && { errcode }) }
}

/** SQLITE_IOERR and its extended codes. */
const isOfDisk = (cause: unknown): boolean => ((errcodeOf(cause) ?? 0) & 0xff) === 10

const errcodeOf = (cause: unknown): number | undefined =>
  cause instanceof Error && 'errcode' in cause ? Number(cause.errcode) : undefined

function open(options: WriterOptions): Writer | WriterOpened {
  try {
    return new Writer(options)
  } catch (cause) {
    const code = errcodeOf(cause)
    return {
      ok: false,
      unusable: cause instanceof UnknownSchema || (code !== undefined && unusable.has(code & 0xff)),
      ...(cause instanceof LaterSchema && { later: true }),
      message: cause instanceof Error ? cause.message : String(cause),
      ...(code !== undefined && { errcode: code }),
    }
  }
}

function serve(port: MessagePort, writer: Writer): void {
  port.on('message', (group: OperationGroup | 'close') => {
    if (group === 'close') {
      writer.close()
      port.close()
      return
    }
    const done = writer.run(group)
    port.postMessage(done, buffersOf(done))
    writer.settle()
  })
  port.postMessage({ ok: true, resealed: writer.resealed } satisfies WriterOpened)
}

const buffersOf = ({ outcomes }: GroupDone): ArrayBuffer[] =>
  outcomes.flatMap((outcome) =>
    outcome.ok && outcome.displaced && outcome.displaced.positions.length > 0
      ? [outcome.displaced.objects.bytes.buffer]
      : [],
  )

if (parentPort) {
  const opened = open(workerData as WriterOptions)
  if (opened instanceof Writer) serve(parentPort, opened)
  else parentPort.postMessage(opened)
}
