const advice: Readonly<Record<string, string>> = {
  EACCES: 'permission denied: run the hub as the user that owns it, or change its owner',
  EPERM: 'permission denied: run the hub as the user that owns it, or change its owner',
  EROFS: 'its file system is read-only: mount it for writing, or name another folder',
  ENOSPC: 'its disk is full: make room, or name another folder',
  EDQUOT: 'its quota is used up: make room, or name another folder',
  ENOTDIR: 'it is no folder, or one above it is none',
  EEXIST: 'it is no folder, or one above it is none',
}

/** The hub cannot work in its folder. */
class UnusableRootDir extends Error {
  readonly code = 'UNUSABLE_ROOT_DIR'
}

/**
 * Runs `act`, which works in the folder of --root-dir. A system error is rethrown with the
 * operation, the path, and what to do.
 */
export function inRootDir<T>(rootDir: string, act: () => T): T {
  try {
    return act()
  } catch (cause) {
    const { code, path = rootDir, syscall } = cause as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw cause
    const why = advice[code] ?? code
    const said = `--root-dir=${rootDir} cannot be used: ${syscall} ${path} (${code}): ${why}`
    throw new UnusableRootDir(said, { cause })
  }
}
