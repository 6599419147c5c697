import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { onceFree } from '../../base/file-lock.ts'
import { lockDirectory } from '../../hub/store/log/lock.ts'

/** The folder is not a hub's alone. */
class CannotPurge extends Error {
  readonly code = 'CANNOT_PURGE'
}

const folders = new Set(['pki', 'cache', 'compiled', 'joined'])
/** Copies of files that others have changed since the join: they are the operator's. */
const copies = 'left'
const ofHub = /\.(?:key|token|json|new|lock)$/

/**
 * Removes the state of a hub with its keys and recorded Secrets, but for copies of files that
 * others have changed. Returns the paths on the node that stay. Rejects, with everything as it was,
 * where the folder holds something else, or a hub still uses it after `patienceMs`. `root`: the
 * mount point of a node's image.
 */
export async function purgeState(
  root: string,
  rootDir: string,
  patienceMs: number,
): Promise<readonly string[]> {
  const folder = join(root, rootDir)
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  const foreign = entries.filter(
    ({ name }) => !folders.has(name) && name !== copies && !ofHub.test(name),
  )
  if (foreign.length > 0) {
    const names = foreign.map(({ name }) => name).join(', ')
    throw new CannotPurge(`${rootDir} holds files that no hub writes: ${names}; nothing was purged`)
  }
  const cache = join(folder, 'cache')
  // The kubelet ends the hub's container after its manifest is gone.
  using _held = existsSync(join(cache, 'lock.db'))
    ? await onceFree(() => lockDirectory(cache), { ms: patienceMs })
    : undefined
  if (existsSync(cache) && lstatSync(cache).isSymbolicLink()) emptyFolder(realpathSync(cache))
  for (const { name } of entries.filter(({ name }) => name !== copies))
    rmSync(join(folder, name), { recursive: true, force: true })
  if (existsSync(join(folder, copies))) return [join(rootDir, copies)]
  try {
    rmdirSync(folder)
  } catch (cause) {
    // A mount point stays, and is empty.
    if ((cause as NodeJS.ErrnoException).code !== 'EBUSY') throw cause
  }
  return []
}

/** A cache may be on a larger disk, where the link leads. */
function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
}
