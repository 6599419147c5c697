import { dummyUnitPaths } from './dummy-unit.ts'
import { hostCommandPaths } from './host-command.ts'
import { hubPaths } from './hub-files.ts'
import { withoutFlags } from './kubelet-flags.ts'
import { isEdited, type FileChange } from './join.ts'
import { isSameFile, ownRights, type NodeFiles } from './node-files.ts'
import { JoinArchive, type JoinRecord } from './record.ts'

export interface LeavePlan {
  /** The kubelet's flags and the network, which a kubelet reads when it starts. */
  readonly first: readonly FileChange[]
  /** Files that a kubelet needs until it has been restarted. */
  readonly last: readonly FileChange[]
  /** Copies of files that others have changed, and that are removed. */
  readonly copies: readonly FileChange[]
  readonly notes: readonly string[]
}

/** Plans a leave without changing anything. Throws where an original is damaged. */
export function planLeave(files: NodeFiles, rootDir: string, record: JoinRecord): LeavePlan {
  const joined = new JoinArchive(files, rootDir)
  const notes: string[] = []
  const copies: FileChange[] = []
  const changes = record.files.flatMap((known): FileChange[] => {
    const { path } = known
    const before = files.read(path)
    let after = joined.original(known)
    if (before && isEdited(known, before)) {
      if (path === record.kubeletFlags) {
        const text = withoutFlags(before.content.toString(), record.kubeconfig, record.taken)
        after = { ...before, content: Buffer.from(text) }
        notes.push(`${path} was changed since: what join wrote is taken out of it, the rest stays`)
      } else {
        const copy = `${rootDir}/left/${path.split('/').at(-1)}`
        copies.push({ path: copy, before: undefined, after: { ...before, ...ownRights(0o600) } })
        notes.push(`${path} was changed since: a copy is in ${copy}`)
      }
    }
    return isSameFile(before, after) ? [] : [{ path, before, after }]
  })
  const late = new Set([
    ...hubPaths(record),
    ...Object.values(dummyUnitPaths),
    ...hostCommandPaths,
    record.kubeconfig,
  ])
  // The flags first of all: with them taken back, a kubelet starts without the hub.
  const ordered = changes.toReversed()
  return {
    first: ordered.filter(({ path }) => !late.has(path)),
    last: ordered.filter(({ path }) => late.has(path)),
    copies,
    notes,
  }
}

/** Carries out one part of a plan; safe to repeat. */
export function applyChanges(files: NodeFiles, changes: readonly FileChange[]): void {
  for (const { path, after } of changes) {
    if (after) files.write(path, after)
    else files.remove(path)
  }
}

/** The end of leaving: folders that joining made go if they are empty, and the record does. */
export function forgetJoin(files: NodeFiles, rootDir: string, record: JoinRecord): void {
  for (const { path } of record.files) files.sweep(path)
  for (const folder of record.folders.toReversed()) files.removeFolder(folder)
  new JoinArchive(files, rootDir).forget()
}
