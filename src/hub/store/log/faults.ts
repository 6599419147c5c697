import { isExpectedFault } from '../../../base/expected-fault.ts'
import { StoreFailure } from '../store.ts'

/** Faults that reach no caller, or not in full. `maintenance`: of an eviction or a compaction. */
export type FaultKind = 'write' | 'read' | 'damaged' | 'unusable' | 'maintenance'
export type ReportFault = (kind: FaultKind, failure: StoreFailure) => void

/** Reports a mistake in the program. Faults of the disk show in the writes of others. */
export function reportMaintenance(report: ReportFault, cause: unknown): void {
  if (!isExpectedFault(cause))
    report('maintenance', new StoreFailure('the maintenance of the store failed', { cause }))
}

const ofDisk = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])

/** Whether the disk is full, read-only or broken, which may pass. */
export const isOfDisk = (cause: unknown): boolean =>
  ofDisk.has(String((cause as { readonly code?: unknown } | undefined)?.code))

export function failureOf(what: string, cause: unknown): StoreFailure {
  if (cause instanceof StoreFailure) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreFailure(`${what}: ${why}`, { cause })
}
