/**
 * Restores an archive, and is killed at one of the changes to the disk:
 * `killed-restore.ts CHANGE FILE ROOT-DIR`. Ends with 0 where there are fewer changes.
 */
import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

const [change, file = '', rootDir = ''] = process.argv.slice(2)
let left = Number(change)

const killing =
  <Args extends unknown[], Result>(act: (...args: Args) => Result) =>
  (...args: Args): Result => {
    if (left-- === 0) process.kill(process.pid, 'SIGKILL')
    return act(...args)
  }

const { rmSync, renameSync, symlinkSync } = fs
Object.assign(fs, {
  rmSync: killing(rmSync),
  renameSync: killing(renameSync),
  symlinkSync: killing(symlinkSync),
})
Object.assign(promises, { rename: killing(promises.rename) })
syncBuiltinESMExports()

const { restore } = await import('../../../src/node/backup/restore.ts')
await restore(file, {
  rootDir,
  cachePath: join(rootDir, 'cache'),
  node: 'edge-1',
  force: false,
  replace: true,
})
