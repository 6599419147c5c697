import { execve, execArgv, execPath, argv as ownArgv } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Environment } from '../config/root-dir.ts'

/**
 * What malloc reads, once, when a process starts: one arena, and a mapping of its own for each
 * buffer of 64 KiB or more, which the kernel has back once it is freed. A hub without them keeps
 * twice the memory after a minute of load.
 */
export const mallocSettings = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '65536' } as const

/**
 * Starts this program anew in the same process, with malloc's settings, where the environment lacks
 * them: the image and the unit have them. Does nothing for a process that sockets were passed to:
 * Node has them closed by then.
 */
export function ensureMallocSettings(env: Environment): void {
  if (env['LISTEN_FDS'] !== undefined) return
  if (Object.keys(mallocSettings).every((name) => env[name] !== undefined)) return
  execve?.(execPath, [execPath, ...execArgv, ...ownArgv.slice(1)], { ...mallocSettings, ...env })
}

/**
 * Has V8 collect all garbage before its heap has doubled since the last time. By itself it lets the
 * heap grow to three times as much, and to as many buffers of answers. Set here, since a later Node
 * that lacks the flag would not start with it.
 */
export const limitHeapGrowth = (): void => setFlagsFromString('--heap-growing-percent=100')

/**
 * Has V8 collect all garbage once and give back what that leaves free: what a start takes and an
 * idle hub does not need, up to 10 MB. By itself V8 may not collect for an hour of little work.
 */
export function giveBackMemory(): void {
  setFlagsFromString('--expose-gc')
  // A later Node may not have it: then the memory stays.
  const collect = runInNewContext('globalThis.gc') as NodeJS.GCFunction | undefined
  setFlagsFromString('--no-expose-gc')
  // In a turn of its own, when the new context is garbage too.
  void collect?.({ type: 'major', flavor: 'last-resort', execution: 'async' })
}
