import { realpathSync, statSync } from 'node:fs'
import { makeFolder } from '../../../base/folder.ts'
import { restrictMode } from '../../../base/file-mode.ts'
import type { GVR } from '../../../api/kube/gvk.ts'
import { StoreFailure } from '../store.ts'
import { Bodies } from './bodies.ts'
import { failureOf, isOfDisk, reportMaintenance, type ReportFault } from './faults.ts'
import { LogFolder, segmentsIn } from './folder.ts'
import { DirectoryInUse, lockDirectory } from './lock.ts'
import { damaged, LogStore } from './log-store.ts'
import { LogWriter } from './log-writer.ts'
import { LaterFormat, recover, Unusable, type Recovered } from './recovery.ts'
import type { StagedReplacement } from './replacement.ts'
import { Seal } from './seal.ts'
import { State } from './state.ts'
import { Upkeep, type OnEvicted } from './upkeep.ts'
import { WritePath } from './write-path.ts'

export interface StoreOptions {
  /** Created if missing, with access for its owner only. */
  readonly directory: string
  /** The key that secrets are sealed with: 32 bytes. */
  readonly sealingKey: Uint8Array
  /**
   * The maximal size of the log in bytes. The store evicts the least needed records before; it
   * refuses a write that still does not fit.
   */
  readonly maxBytes?: number | undefined
  /** How long a write may stay unsynced, in milliseconds; absent: some seconds. */
  readonly syncWithinMs?: number
  /** Of which resources one copy is kept for all callers; absent: of none. */
  readonly isShared?: ((gvr: GVR) => boolean) | undefined
  /** Called for each fault, for logs and metrics. */
  readonly report: ReportFault
  /** Called when the store takes writes again after it did not. */
  readonly onRecovered?: () => void
  /** Called after an eviction. */
  readonly onEvicted?: OnEvicted
  /** Called after writes of callers, with their bytes of objects and documents. */
  readonly onCommitted?: (bytes: number) => void
}

/** How long a write may stay unsynced. */
export const unsyncedMs = 5_000

const mostSegmentBytes = 8 << 20
const leastSegmentBytes = 64 << 10

/** The size of the log on the disk. */
export const bytesOnDisk = (directory: string): number => {
  try {
    const log = new LogFolder(directory)
    return segmentsIn(directory)
      .map((id) => statSync(log.segment(id).path).size)
      .reduce((sum, size) => sum + size, 0)
  } catch {
    return 0
  }
}

/**
 * Opens the store, also after a crash. Sets files that are no log aside, which is reported, and
 * begins a new one. On a disk that refuses writes the store opens, too, refuses writes, and takes
 * them as soon as the disk allows it. Rejects with a `StoreFailure` where the log cannot be read,
 * and where another store, of this process or another, uses the directory.
 */
export async function openStore(options: StoreOptions): Promise<LogStore> {
  const { directory } = options
  let held: Disposable | undefined
  /** Locks the directory before anything is written: another process may use it. */
  const hold = async (): Promise<void> => {
    if (held) return
    makeFolder(directory, 0o700)
    // The directory may be a symbolic link, to a larger disk.
    restrictMode(realpathSync(directory), 0o700)
    held = await lockDirectory(directory)
  }
  let refusal: unknown
  try {
    await hold()
  } catch (cause) {
    if (cause instanceof DirectoryInUse || !isOfDisk(cause)) throw failedToOpen(cause)
    refusal = cause
  }
  try {
    const store = assemble(options, { hold, refusal, release: () => held?.[Symbol.dispose]() })
    await store.begin()
    return store
  } catch (cause) {
    held?.[Symbol.dispose]()
    throw failedToOpen(cause)
  }
}

export interface Opening {
  readonly hold: () => Promise<void>
  /** Why the directory could not be locked yet. */
  readonly refusal: unknown
  readonly release: () => void
  readonly isReadOnly?: boolean
}

export function assemble(options: StoreOptions, opening: Opening): LogStore {
  const { hold, refusal, release, isReadOnly = false } = opening
  const { directory, sealingKey, report, maxBytes = Infinity } = options
  const folder = new LogFolder(directory)
  const lists = new Set<StagedReplacement>()
  const state = new State()
  const recovered = isReadOnly ? recover(folder, state) : recoveredOrAside(folder, state, report)
  const log: LogWriter = new LogWriter(
    {
      folder,
      segmentBytes: Math.max(leastSegmentBytes, Math.min(mostSegmentBytes, maxBytes / 16)),
      syncWithinMs: options.syncWithinMs ?? unsyncedMs,
      prepare: hold,
      onSyncFailed: (cause) => path.failed(cause),
    },
    recovered.from,
  )
  const path: WritePath = new WritePath({
    state,
    log,
    report,
    onCommitted: options.onCommitted ?? nothing,
    onRecovered: options.onRecovered ?? nothing,
    onRetry: () => void upkeep.pass(),
    onWritten: () => upkeep.written(),
    room: (bytes) => upkeep.room(bytes),
  })
  const closing = new AbortController()
  const upkeep: Upkeep = new Upkeep({
    closing: closing.signal,
    state,
    lists,
    log,
    folder,
    path,
    maxBytes,
    onEvicted: options.onEvicted ?? nothing,
    onFailed: (cause) => reportMaintenance(report, cause),
  })
  const bodies = new Bodies(new Seal(sealingKey), (scope, held) => {
    const parts = state.referringTo(scope, held.body)
    // What is in use no more was found before, or goes anyway.
    if (parts.length === 0) return
    const { namespace, name, version } = held
    const cause = { scope, object: { namespace, name, version } }
    report('damaged', new StoreFailure(damaged, { cause }))
    path.remove(parts)
  })
  const store: LogStore = new LogStore({
    state,
    log,
    path,
    bodies,
    lists,
    maxBytes,
    upkeep,
    report,
    isShared: options.isShared ?? (() => false),
    isInPlace: () => folder.isInPlace(),
    closing: () => closing.abort(),
    release: () => {
      folder.close()
      release()
    },
  })
  if (recovered.damaged > 0) {
    const why = `${recovered.damaged} records are damaged: what they may have changed is unknown until an API server sends it again`
    report('damaged', new StoreFailure(why))
    void upkeep.pass()
  }
  if (refusal !== undefined) path.failed(refusal)
  return store
}

/** Reads the log, or sets it aside where it cannot be one. */
function recoveredOrAside(folder: LogFolder, state: State, report: ReportFault): Recovered {
  try {
    return recover(folder, state)
  } catch (cause) {
    if (!(cause instanceof Unusable)) throw cause
    const said = `${folder.path} cannot be used and its files are now in ${folder.setAside()}: the cache begins empty`
    report('set-aside', new StoreFailure(said, { cause }))
    return recover(folder, state)
  }
}

const nothing = (): undefined => undefined

const failedToOpen = (cause: unknown): StoreFailure =>
  cause instanceof LaterFormat
    ? new StoreFailure(
        `the cache was written by a later release: ${cause.message}. It is left as it is. Start the release that wrote it; or move the files away, and this one begins with an empty cache`,
        { cause },
      )
    : failureOf('the store cannot be opened', cause)
