import { crc32 } from 'node:zlib'
import type { CollectionAddress } from './address.ts'

/**
 * Of what is nowhere else to be checked by: at which version which collection is. A version that a
 * disk has changed would be one that no API server ever gave.
 */
export const headChecksum = (
  { namespace, labelSelector, fieldSelector }: Omit<CollectionAddress, 'scope'>,
  version: string,
): number => crc32(`${version}\0${namespace}\0${labelSelector}\0${fieldSelector}`) | 0

/** Whether it is what was written; `null`: an earlier release wrote none. */
export const isHeadWhole = (
  checksum: unknown,
  of: Omit<CollectionAddress, 'scope'>,
  version: string,
): boolean => checksum === null || checksum === headChecksum(of, version)
