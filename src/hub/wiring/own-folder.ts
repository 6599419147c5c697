const advice: Readonly<Record<string, string>> = {
  EACCES: 'permission denied: run the hub as the user that owns it, or change its owner',
  EPERM: 'permission denied: run the hub as the user that owns it, or change its owner',
  EROFS: 'its file system is read-only: mount it for writing, or name another folder',
  ENOSPC: 'its disk is full: make room, or name another folder',
  EDQUOT: 'its quota is used up: make room, or name another folder',
  ENOTDIR: 'it is no folder, or one above it is none',
  EEXIST: 'it is no folder, or one above it is none',
  ENOENT: 'no folder can be created there: name another',
}

/** The hub cannot work in a folder of its own. */
class UnusableFolder extends Error {
  readonly code = 'UNUSABLE_FOLDER'
}

/**
 * Runs `act`, which works in the folder that `flag` names. A system error is rethrown with the
 * flag, the operation, the path, and what to do.
 */
export function inOwnFolder<T>(
  flag: '--root-dir' | '--disk-cache-path',
  folder: string,
  act: () => T,
): T {
  try {
    return act()
  } catch (cause) {
    const { code, path = folder, syscall } = cause as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw cause
    const why = advice[code] ?? code
    const said = `${flag}=${folder} cannot be used: ${syscall} ${path} (${code}): ${why}`
    throw new UnusableFolder(said, { cause })
  }
}
