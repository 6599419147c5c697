import { LockTaken, onceFree, takeLock } from '../../base/file-lock.ts'
import { messageOf } from '../../config/settings.ts'
import type { NodeFiles } from './node-files.ts'

/**
 * What is here ends with the boot, as locks do. It is the same folder for a container with the
 * host's root, whatever other paths of the host its flags name.
 */
const folder = '/run/nodehub'

/** Another process changes the node; this one has changed nothing. */
export class NodeInChange extends LockTaken {}

/** How a command takes the lock of the node; `undefined`: its caller has it. */
export type NodeLocking = (files: NodeFiles) => Promise<Disposable> | undefined

/**
 * Keeps other commands from changing the files of this node until it is disposed of, or the process
 * ends in whatever way. Rejects with `NodeInChange`.
 */
export async function lockNode(files: NodeFiles): Promise<Disposable> {
  try {
    if (!files.isThere('/run')) files.makeFolder('/run', 0o755)
    return await takeLock(`${files.ownFolder(folder, 0o700)}/change.lock`)
  } catch (cause) {
    if (cause instanceof LockTaken) throw new NodeInChange(whoChanges(cause.pid), cause.pid, cause)
    throw new Error(
      `${folder}/change.lock cannot be locked: ${messageOf(cause)} (a container needs /run of the node)`,
      { cause },
    )
  }
}

/** Waits until no other command changes the node, for so long at most. */
export const lockNodeOnceFree = (
  files: NodeFiles,
  patience: Parameters<typeof onceFree>[1],
): Promise<Disposable> => onceFree(() => lockNode(files), patience)

/** `pid`: the holder as this process sees it; `undefined` where it is in other namespaces. */
function whoChanges(pid: number | undefined): string {
  const who = pid === undefined ? 'of the host or of another container' : `process ${pid}`
  const end =
    pid === undefined
      ? 'end it there, or take the label nodehub.io/hub off the Node'
      : `kill ${pid}`
  return `another nodehub is changing this node (${who}): try again when it has ended; to have it end now, ${end}`
}
