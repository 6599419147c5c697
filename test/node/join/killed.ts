import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/** What changes what others find after a kill. */
const writing = [
  'openSync',
  'writeSync',
  'renameSync',
  'rmSync',
  'rmdirSync',
  'mkdirSync',
  'fchmodSync',
  'fchownSync',
  'unlinkSync',
  'symlinkSync',
] as const

/** To open a file that is there changes nothing. */
const isRead = (name: string, flags: unknown): boolean =>
  name === 'openSync' && typeof flags === 'number' && (flags & fs.constants.O_CREAT) === 0

/** Runs with every such call failing from the one of this number on. Whether there were fewer. */
export async function killedAt(number: number, act: () => Promise<unknown>): Promise<boolean> {
  let calls = 0
  const real = fs as unknown as Record<string, (...args: unknown[]) => unknown>
  const kept = writing.map((name) => [name, real[name]!] as const)
  for (const [name, call] of kept) {
    real[name] = (...args) => {
      if (isRead(name, args[1])) return call(...args)
      calls += 1
      if (calls >= number) throw new Error('killed')
      return call(...args)
    }
  }
  syncBuiltinESMExports()
  try {
    await act()
  } finally {
    for (const [name, call] of kept) real[name] = call
    syncBuiltinESMExports()
  }
  return calls < number
}
