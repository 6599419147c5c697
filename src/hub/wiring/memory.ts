import { totalmem } from 'node:os'
import type { StartConfig } from '../../config/hub-config.ts'

/**
 * The memory that the process may use, in bytes: the configured limit, else that of the control
 * group; 512 MiB where that is unlimited.
 */
export function memoryLimit({ memoryLimitBytes }: StartConfig): number {
  if (memoryLimitBytes !== undefined) return memoryLimitBytes
  const given = process.constrainedMemory()
  return given > 0 && given < totalmem() ? given : 512 * 1024 * 1024
}
