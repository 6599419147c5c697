import { isExpectedFault } from '../../../base/expected-fault.ts'
import { StoreFailure } from '../store.ts'

/**
 * Faults that reach no caller, or not in full. `writer`: there is no writer; another one is
 * started. `maintenance`: of an eviction, or of the deletion of what is not used.
 */
export type FaultKind =
  'write' | 'read' | 'writer' | 'damaged' | 'set-aside' | 'resealed' | 'maintenance'
export type ReportFault = (kind: FaultKind, failure: StoreFailure) => void

/** Reports a mistake in the program. Faults of the disk show in the writes of others. */
export function reportMaintenance(report: ReportFault, cause: unknown): void {
  if (!isExpectedFault(cause))
    report('maintenance', new StoreFailure('the maintenance of the store failed', { cause }))
}

/**
 * Error codes for a disk that is full, read-only or broken: of the system, and of SQLite in the
 * lower byte.
 */
const ofDisk = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])
const ofDiskInSqlite = new Set([8, 10, 13])

/** Whether the disk refuses writes, which may pass. */
export function isOfDisk({ cause }: StoreFailure): boolean {
  const { code, errcode } = (cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown }
  return (
    (typeof code === 'string' && ofDisk.has(code)) ||
    (typeof errcode === 'number' && ofDiskInSqlite.has(errcode & 0xff))
  )
}
