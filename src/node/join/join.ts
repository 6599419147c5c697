import { stringify } from 'yaml'
import { newAuthority, storeAuthority } from '../../certificates/stored-authority.ts'
import { hubFiles, type HubRunner, type HubRuntime } from './hub-files.ts'
import { kubeletKubeconfig, type KubeletKubeconfigOptions } from './kubelet-kubeconfig.ts'
import { withFlags, withoutFlags, type RemovedFlags } from './kubelet-flags.ts'
import { dummyUnitFiles } from './dummy-unit.ts'
import { hostCommandFiles } from './host-command.ts'
import { keptPorts, keptPortsFile } from './kept-ports.ts'
import { loopbackName, loopbackNetwork } from './loopback.ts'
import { isSameFile, ownRights, type NodeFile, type NodeFiles, type Rights } from './node-files.ts'
import { JoinArchive, sha256, type JoinRecord, type RecordedFile } from './record.ts'
import { networksIn } from './runtime-network.ts'
import type { StaticPodOptions } from './static-pod.ts'

export interface JoinSettings {
  readonly nodePool: string
  readonly hostNetwork: boolean
  readonly rootDir: string
  readonly runBy: HubRunner
  /** Whether the kernel is to keep the ports of the hub for root. */
  readonly keepPorts: boolean
  /** Whether systemd is to make the interface at which pods reach the hub. */
  readonly dummyInterface: boolean
  /** Its address; absent: the hub's default. */
  readonly dummyAddress: string | undefined
  /** Where the host of a static pod is given the command `nodehub`; `undefined`: nowhere. */
  readonly hostCommand: string | undefined
  /** How the hub is started; systemd needs no image. */
  readonly hub: Omit<StaticPodOptions, 'nodePool' | 'hostNetwork' | 'rootDir'> & HubRuntime
  readonly kubelet: KubeletKubeconfigOptions
  /** Whether the hub makes its own authority, as it does unless it is given a certificate. */
  readonly ownAuthority: boolean
  /** Files and folders of the node. */
  readonly paths: {
    readonly kubeletFlags: string
    /** Written here, to lead to the hub. */
    readonly kubeconfig: string
    /** The kubelet's own, which is left alone. */
    readonly kubeletKubeconfig: string
    readonly networkFolder: string
  }
  /** Whether files that were edited since the last join are overwritten. */
  readonly overwrite: boolean
}

/** A file before and after. */
export interface FileChange {
  readonly path: string
  readonly before: NodeFile | undefined
  readonly after: NodeFile | undefined
}

export interface JoinPlan {
  readonly changes: readonly FileChange[]
  /** Whether the node has not joined yet. */
  readonly isFirst: boolean
  /** Notes for the operator, a sentence each. */
  readonly notes: readonly string[]
  readonly record: JoinRecord
  /** The originals that the record refers to. */
  readonly originals: readonly Buffer[]
}

/** A join is refused; nothing has been written. */
export class CannotJoin extends Error {
  readonly code = 'CANNOT_JOIN'
}

/**
 * Plans a join of this node without changing anything. Throws `CannotJoin` or `UnreadableFlags`.
 */
export function planJoin(files: NodeFiles, settings: JoinSettings): JoinPlan {
  const { paths, nodePool, hostNetwork } = settings
  const joined = new JoinArchive(files, settings.rootDir)
  const existing = joined.read()
  const targets = targetsOf(settings)
  checkSameJoin(existing, settings, targets)
  const changes: FileChange[] = []
  const notes: string[] = []
  const originals: Buffer[] = []
  const recorded: RecordedFile[] = []
  let taken: RemovedFlags = existing?.taken ?? { ended: [], replaced: [] }
  for (const target of targets) {
    const before = files.read(target.path)
    const known = existing?.files.find(({ path }) => path === target.path)
    const edited = known !== undefined && isEdited(known, before)
    if (edited && target.make === undefined && !settings.overwrite) {
      notes.push(`${target.path} was changed since the last join, and stays as it is (--overwrite)`)
      recorded.push(known)
      continue
    }
    let original = known === undefined || edited ? before : joined.original(known)
    if (edited && before !== undefined && target.make !== undefined && existing) {
      const text = withoutFlags(before.content.toString(), existing.kubeconfig, existing.taken)
      original = { ...before, content: Buffer.from(text) }
    }
    if (edited && target.make === undefined) original = joined.original(known)
    let content = target.content ?? ''
    if (target.make !== undefined) {
      const made = target.make(original?.content.toString() ?? '')
      content = made.content
      taken = made.taken
    }
    const like = target.make && (before ?? original)
    const after: NodeFile = {
      content: Buffer.from(content),
      ...(like ? editedRights(like) : ownRights(target.mode)),
    }
    const sum = sha256(after.content)
    if (original !== undefined) originals.push(original.content)
    recorded.push({
      path: target.path,
      original:
        original === undefined ? null : { ...rightsOf(original), sha256: sha256(original.content) },
      written: [...(known?.written.filter((each) => each !== sum) ?? []), sum],
    })
    if (!isSameFile(before, after)) changes.push({ path: target.path, before, after })
  }
  notes.push(...notesOnFlags(taken, settings), ...notesOnNetwork(files, settings))
  const folders = targets.flatMap(({ path }) => files.missingAbove(path))
  return {
    changes,
    isFirst: existing === undefined,
    notes,
    originals,
    record: {
      version: 1,
      nodePool,
      hostNetwork,
      files: recorded,
      folders: [...new Set([...(existing?.folders ?? []), ...folders])],
      taken,
      kubeconfig: paths.kubeconfig,
      kubeletFlags: paths.kubeletFlags,
      kubeletKubeconfig: paths.kubeletKubeconfig,
      ...settings.runBy,
    },
  }
}

/**
 * Carries out a plan. The record is on the disk before the first file changes, and the kubelet's
 * flags change last: after an interruption at any point the kubelet starts, and the next join or
 * leave continues.
 */
export async function applyJoin(
  files: NodeFiles,
  settings: JoinSettings,
  plan: JoinPlan,
): Promise<void> {
  // Made first: nothing below waits.
  const authority = settings.ownAuthority ? await newAuthority() : undefined
  const joined = new JoinArchive(files, settings.rootDir)
  files.makeFolder(settings.rootDir, 0o700)
  for (const original of plan.originals) joined.keep(original)
  joined.write(plan.record)
  // The kubelet does not start on a kubeconfig that names a certificate which is not there, and it
  // is the kubelet that starts the hub.
  if (authority) storeAuthority(files.ownFolder(`${settings.rootDir}/pki`, 0o700), authority)
  for (const { path, after } of plan.changes) if (after) files.write(path, after)
  for (const { path } of plan.record.files) files.sweep(path)
  const settled = plan.record.files.map((file) => ({ ...file, written: file.written.slice(-1) }))
  joined.write({ ...plan.record, files: settled })
}

interface Target {
  readonly path: string
  /** Of the file that was there before; a file that is edited in place stays readable as it was. */
  readonly mode: number
  readonly content?: string
  /** The content, made of the original. */
  readonly make?: (original: string) => { readonly content: string; readonly taken: RemovedFlags }
}

/** In the order in which they are written. */
function targetsOf(settings: JoinSettings): readonly Target[] {
  const { paths, nodePool, hostNetwork, rootDir } = settings
  const network = `${paths.networkFolder}/${loopbackName}`
  return [
    { path: paths.kubeconfig, mode: 0o600, content: yaml(kubeletKubeconfig(settings.kubelet)) },
    ...(hostNetwork ? [{ path: network, mode: 0o644, content: loopbackNetwork }] : []),
    ...(settings.keepPorts
      ? [{ path: keptPortsFile, mode: 0o644, content: keptPorts(settings.hub.ports) }]
      : []),
    ...(settings.dummyInterface ? dummyUnitFiles(settings.dummyAddress) : []),
    ...hubFiles(settings.runBy, { ...settings.hub, rootDir, nodePool, hostNetwork }),
    ...hostCommandFiles(settings.hostCommand, rootDir, settings.runBy),
    {
      path: paths.kubeletFlags,
      mode: 0o644,
      make: (original) =>
        withFlags(original, { nodePool, hostNetwork, kubeconfig: paths.kubeconfig }),
    },
  ]
}

const yaml = (document: object): string => stringify(document, { lineWidth: 0 })

/** Whether a file differs from both the original and all contents that a join has written. */
export function isEdited(known: RecordedFile, now: NodeFile | undefined): boolean {
  if (now === undefined) return known.original !== null
  const sum = sha256(now.content)
  return sum !== known.original?.sha256 && !known.written.includes(sum)
}

const rightsOf = ({ mode, uid, gid }: Rights): Rights => ({ mode, uid, gid })

/** An edited file stays readable as it was; only the owner may write it. */
const editedRights = ({ mode, gid }: Rights): Rights => ({ ...ownRights(mode & 0o755), gid })

function checkSameJoin(
  existing: JoinRecord | undefined,
  { hostNetwork, nodePool, runBy }: JoinSettings,
  targets: readonly Target[],
): void {
  if (existing === undefined) return
  if (existing.hostNetwork !== hostNetwork) {
    const kind = (yes: boolean): string => (yes ? 'a host-network pool' : 'a standard pool')
    throw new CannotJoin(
      `the node has joined ${existing.nodePool}, ${kind(existing.hostNetwork)}, and ${nodePool} is ${kind(hostNetwork)}: ${howToChangeKind}`,
    )
  }
  if ('systemd' in existing !== 'systemd' in runBy) {
    const how = 'systemd' in existing ? 'a systemd service' : 'a static pod'
    throw new CannotJoin(`the node has joined with the hub as ${how}: nodehub leave first`)
  }
  // A later join may write more files, but not leave one out.
  const paths = targets.map(({ path }) => path)
  if (!existing.files.every(({ path }) => paths.includes(path))) {
    throw new CannotJoin('the node has joined with other paths: nodehub leave first')
  }
}

/** The steps to change the kind, as part of a sentence. */
export const howToChangeKind =
  'changing the kind of pool takes nodehub leave, deleting the Node object, and joining again'

function notesOnFlags(taken: RemovedFlags, { paths }: JoinSettings): readonly string[] {
  const flags = taken.ended.map((flag) => flag.split('=')[0]).join(', ')
  if (flags === '') return []
  return [
    `${flags} left the kubelet in 1.24 and ${taken.ended.length === 1 ? 'is' : 'are'} taken out of ${paths.kubeletFlags}; nodehub leave rolls that back`,
  ]
}

function notesOnNetwork(
  files: NodeFiles,
  { hostNetwork, paths: { networkFolder } }: JoinSettings,
): readonly string[] {
  const networks = networksIn(files, networkFolder)
  const others = networks.filter((name) => name !== loopbackName)
  if (!hostNetwork) {
    return networks.includes(loopbackName)
      ? [
          `${networkFolder}/${loopbackName} is there: with it pods get no address on this node of a standard pool; remove it`,
        ]
      : []
  }
  const before = others.filter((name) => name < loopbackName)
  if (before.length > 0) {
    return [
      `${networkFolder}/${before[0]} comes before ${loopbackName}, and the container runtime uses the first: remove it`,
    ]
  }
  return others.length === 0
    ? []
    : [
        `${networkFolder} also has ${others.join(', ')}: the container runtime uses the first, ${loopbackName}`,
      ]
}
