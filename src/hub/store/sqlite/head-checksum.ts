import { crc32 } from 'node:zlib'
import type { CollectionAddress } from './address.ts'

/**
 * Covers a collection's version, which no other checksum does: a version changed by the disk would
 * be one that no API server ever gave.
 */
export const headChecksum = (
  { namespace, labelSelector, fieldSelector }: Omit<CollectionAddress, 'scope'>,
  version: string,
): number => crc32(`${version}\0${namespace}\0${labelSelector}\0${fieldSelector}`) | 0

/** Whether the row is as written; `null`: an earlier release wrote no checksum. */
export const isHeadWhole = (
  checksum: unknown,
  of: Omit<CollectionAddress, 'scope'>,
  version: string,
): boolean => checksum === null || checksum === headChecksum(of, version)
