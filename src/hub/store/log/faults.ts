import { StoreFailure } from '../store.ts'

/** Faults that reach no caller, or not in full. `maintenance`: of an eviction or a compaction. */
export type FaultKind = 'write' | 'read' | 'damaged' | 'unusable' | 'maintenance'
export type ReportFault = (kind: FaultKind, failure: StoreFailure) => void

const ofDisk = new Set(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])

/** Whether the disk is full, read-only or broken, which may pass. */
export const isOfDisk = (cause: unknown): boolean =>
  ofDisk.has(String((cause as { readonly code?: unknown } | undefined)?.code))

export function failureOf(what: string, cause: unknown): StoreFailure {
  if (cause instanceof StoreFailure) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreFailure(`${what}: ${why}`, { cause })
}
