import type { StoreFailure } from '../store.ts'

/**
 * Faults that reach no caller, or not in full. `writer`: there is no writer; another one is
 * started.
 */
export type FaultKind = 'write' | 'read' | 'writer' | 'damaged' | 'set-aside' | 'resealed'
export type ReportFault = (kind: FaultKind, failure: StoreFailure) => void

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
