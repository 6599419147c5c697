import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Group and others. */
const writableByOthers = 0o022
/** Whoever may write into such a folder may not touch what is another's there. */
const sticky = 0o1000

/**
 * Why a file or folder of code is not to be run: others than root and the hub's own user may write
 * it, or put another in its place. As ssh looks at what it reads (OpenSSH misc.c, safe_path): at
 * itself and each folder above it, by its own name and by where its links lead. `undefined`: only
 * they may. Throws where it cannot be looked at.
 */
export function whyUntrusted(path: string): string | undefined {
  const trusted = new Set([0, process.getuid?.() ?? 0])
  const named = resolve(path)
  const real = realpathSync(named)
  for (const place of new Set([real, ...foldersAbove(real), ...foldersAbove(named)])) {
    const { uid, mode } = statSync(place)
    if (!trusted.has(uid)) return `${place} belongs to the user ${uid}, who could change it`
    const isShared = place !== real && (mode & sticky) !== 0
    if ((mode & writableByOthers) !== 0 && !isShared && !isReadOnly(place))
      return `${place} may be written by others than its owner (mode ${(mode & 0o7777).toString(8)})`
  }
  return undefined
}

function* foldersAbove(path: string): Generator<string> {
  for (let at = dirname(path); ; at = dirname(at)) {
    yield at
    if (at === dirname(at)) return
  }
}

/** A mounted ConfigMap is a folder that everybody may write, in a file system where nobody can. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EROFS'
  }
}
