import { totalmem } from 'node:os'
import type { HubConfig } from '../config/hub-config.ts'

/** What the process may hold, in bytes: what was set, else what the control group allows; where it allows all there is, what a node can well spare. */
export function memoryLimit({ memoryLimitBytes }: HubConfig): number {
  if (memoryLimitBytes !== undefined) return memoryLimitBytes
  const given = process.constrainedMemory()
  return given > 0 && given < totalmem() ? given : 512 * 1024 * 1024
}
