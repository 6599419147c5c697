import { now } from '../../base/clock.ts'
import { LockTaken, onceFree, takeLock } from '../../base/file-lock.ts'
import { parseJson } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { messageOf } from '../../config/settings.ts'
import { ownRights, type NodeFiles } from './node-files.ts'

/**
 * What is here ends with the boot, as locks do. It is the same folder for a container with the
 * host's root, whatever other paths of the host its flags name.
 */
const folder = '/run/nodehub'

/** Who has the lock, for the others; there while it is held. */
const holderFile = `${folder}/change.json`

/** Another process changes the node; this one has changed nothing. */
export class NodeInChange extends LockTaken {}

/** How a command takes the lock of the node; `undefined`: its caller has it. */
export type NodeLocking = (files: NodeFiles, command: string) => Promise<Disposable> | undefined

/**
 * Keeps other commands from changing the files of this node until it is disposed of, or the process
 * ends in whatever way. `command` names this change to the others. Rejects with `NodeInChange`.
 */
export async function lockNode(files: NodeFiles, command: string): Promise<Disposable> {
  using held = new DisposableStack()
  try {
    if (!files.isThere('/run')) files.makeFolder('/run', 0o755)
    held.use(await takeLock(`${files.ownFolder(folder, 0o700)}/change.lock`))
  } catch (cause) {
    if (!(cause instanceof LockTaken))
      throw new Error(
        `${folder}/change.lock cannot be locked: ${messageOf(cause)} (a container needs /run of the node)`,
        { cause },
      )
    throw new NodeInChange(whoChanges(files, cause.pid), cause.pid, cause)
  }
  const holder = { command, pid: String(process.pid), since: new Date(now()).toISOString() }
  files.write(holderFile, { content: Buffer.from(JSON.stringify(holder)), ...ownRights(0o600) })
  held.defer(() => forget(files))
  return held.move()
}

/** Waits until no other command changes the node, for so long at most. */
export const lockNodeOnceFree = (
  files: NodeFiles,
  command: string,
  patience: Parameters<typeof onceFree>[1],
): Promise<Disposable> => onceFree(() => lockNode(files, command), patience)

/** What is left of a holder is overwritten by the next one. */
function forget(files: NodeFiles): void {
  try {
    files.remove(holderFile)
  } catch {
    return
  }
}

/** `pid`: the holder as this process sees it; `undefined` where it is in other namespaces. */
function whoChanges(files: NodeFiles, pid: number | undefined): string {
  const holder = parseJson(files.read(holderFile)?.content.toString() ?? '')
  const command = textAt(holder, 'command') || 'another nodehub'
  const who =
    pid === undefined
      ? `process ${textAt(holder, 'pid')} of the host or of another container`
      : `process ${pid}`
  const end = command.startsWith('nodehub install')
    ? 'take the label nodehub.io/hub off the Node'
    : `kill ${pid ?? 'it there'}`
  return `${command} is changing this node (${who}, since ${textAt(holder, 'since')}): try again when it has ended; to have it end now, ${end}`
}
