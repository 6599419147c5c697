import type { GVR } from '../../../api/kube/gvk.ts'
import { StoreFailure } from '../store.ts'
import { Bodies, Seal } from './bodies.ts'
import type { ReportFault } from './faults.ts'
import { LogWriter } from './log-writer.ts'
import { LogFolder } from './segments.ts'
import { recover } from './recovery.ts'
import { State } from '../state/state.ts'
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
}

/** How long a write may stay unsynced. */
export const unsyncedMs = 5_000

const mostSegmentBytes = 8 << 20
const leastSegmentBytes = 64 << 10

export interface Opening {
  readonly lock: () => Promise<void>
  /** Why the directory could not be locked yet. */
  readonly refusal: unknown
  readonly release: () => void
}

/** A store on the log in the directory. Throws what `recover` throws. */
export function partsOf(options: StoreOptions, opening: Opening) {
  const { lock, refusal, release } = opening
  const { directory, sealingKey, report, maxBytes = Infinity } = options
  const folder = new LogFolder(directory)
  const state = new State()
  const recovered = recover(folder, state)
  const segmentBytes = Math.max(leastSegmentBytes, Math.min(mostSegmentBytes, maxBytes / 16))
  const log: LogWriter = new LogWriter(
    {
      folder,
      segmentBytes,
      syncWithinMs: options.syncWithinMs ?? unsyncedMs,
      prepare: lock,
      onSyncFailed: (cause) => path.failed(cause),
    },
    recovered.from,
  )
  const path: WritePath = new WritePath({
    state,
    log,
    report,
    onRecovered: options.onRecovered ?? nothing,
    keeper: () => upkeep,
  })
  const closing = new AbortController()
  const upkeep: Upkeep = new Upkeep({
    closing: closing.signal,
    state,
    log,
    folder,
    path,
    maxBytes,
    segmentBytes,
    onEvicted: options.onEvicted ?? nothing,
    report,
  })
  const bodies = new Bodies(folder, new Seal(sealingKey), (scope, held) => {
    const parts = state.referringTo(scope, held.body)
    // What is in use no more was found before, or goes anyway.
    if (parts.length === 0) return
    const { namespace, name, version } = held
    const cause = { scope, object: { namespace, name, version } }
    report('damaged', new StoreFailure(damaged, { cause }))
    path.evict([{ kind: 'evict', parts }])
  })
  if (recovered.damaged > 0) {
    const why = `${recovered.damaged} records are damaged: what they may have changed is unknown until an API server sends it again`
    report('damaged', new StoreFailure(why))
  }
  if (recovered.isUnusable)
    report('unusable', new StoreFailure(`no file of ${directory} can be used`))
  if (recovered.damaged > 0 || recovered.isUnusable) void upkeep.pass()
  if (refusal !== undefined) path.failed(refusal)
  return {
    state,
    folder,
    log,
    path,
    bodies,
    maxBytes,
    upkeep,
    report,
    closing,
    release,
    /** Whether one copy of the resource is kept for all callers. */
    isShared: options.isShared ?? (() => false),
  }
}

export type StoreParts = ReturnType<typeof partsOf>

const nothing = (): undefined => undefined

const damaged = 'stored data is damaged: it is not served until an API server sends it again'
