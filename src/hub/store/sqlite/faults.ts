import type { StoreFailure } from '../store.ts'

/**
 * What went wrong that no caller is told, or that more than the caller should know. `writer`: there
 * is none at present, and another is started by itself.
 */
export type FaultKind = 'write' | 'read' | 'writer' | 'damaged' | 'set-aside' | 'resealed'
export type ReportFault = (kind: FaultKind, failure: StoreFailure) => void

/**
 * What the system says of a disk that is full, read-only or broken; and SQLite, in the lower byte
 * of its code.
 */
const ofDisk = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])
const ofDiskInSqlite = new Set([8, 10, 13])

/** Whether it is the disk that takes no writes: something that may pass. */
export function isOfDisk({ cause }: StoreFailure): boolean {
  const { code, errcode } = (cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown }
  return (
    (typeof code === 'string' && ofDisk.has(code)) ||
    (typeof errcode === 'number' && ofDiskInSqlite.has(errcode & 0xff))
  )
}
