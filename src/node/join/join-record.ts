import { posix } from 'node:path'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { hubPaths, type HubRunner } from './hub-files.ts'
import { dummyUnitPaths } from './dummy-unit.ts'
import { hostCommandPaths } from './host-command.ts'
import { keptPortsFile } from './kept-ports.ts'
import { loopbackName } from './loopback.ts'
import type { RemovedFlags } from './kubelet-flags.ts'
import type { Rights } from './node-files.ts'
import {
  checksum,
  listOf,
  MalformedRecord,
  numberOf,
  objectOf,
  parsedRecord,
  pathOf,
  textOf,
} from './record-fields.ts'

/** The original of a file that `join` has written. */
export interface RecordedFile {
  readonly path: string
  /** The original, kept under its checksum; `null`: there was none. */
  readonly original: (Rights & { readonly sha256: string }) | null
  /** Checksums of the contents that `join` has written there, or was about to. */
  readonly written: readonly string[]
}

/** The record by which a join is undone. */
export type JoinRecord = JoinedNode & HubRunner

export interface JoinedNode {
  readonly version: 1
  readonly nodePool: string
  readonly hostNetwork: boolean
  readonly files: readonly RecordedFile[]
  /** Folders that `join` made, the innermost last. */
  readonly folders: readonly string[]
  readonly taken: RemovedFlags
  /** The kubeconfig that leads to the hub, and the file of the kubelet's flags. */
  readonly kubeconfig: string
  readonly kubeletFlags: string
  /** The kubelet's original kubeconfig: how to reach an API server without the hub. */
  readonly kubeletKubeconfig: string
}

/**
 * The record of a join in its text. Throws `MalformedRecord` where anything in it is not as `join`
 * writes it: by it files of the node are replaced and removed, and half of it is as good as none.
 */
export function parseJoinRecord(text: string): JoinRecord {
  const record = objectOf(parsedRecord(text), 'the whole')
  if (record['version'] !== 1) throw new MalformedRecord('it is of another release of nodehub')
  const { hostNetwork } = record
  if (typeof hostNetwork !== 'boolean')
    throw new MalformedRecord('hostNetwork is not true or false')
  const paths = {
    kubeconfig: pathOf(record['kubeconfig'], 'kubeconfig'),
    kubeletFlags: pathOf(record['kubeletFlags'], 'kubeletFlags'),
    kubeletKubeconfig: pathOf(record['kubeletKubeconfig'], 'kubeletKubeconfig'),
  }
  const files = listOf(record['files'], 'files').map(fileOf)
  const runBy = runByOf(record)
  checkFiles(files, [paths.kubeconfig, paths.kubeletFlags, ...hubPaths(runBy)])
  const taken = objectOf(record['taken'], 'taken')
  return {
    version: 1,
    nodePool: textOf(record['nodePool'], 'nodePool', /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/),
    hostNetwork,
    files,
    folders: listOf(record['folders'], 'folders').map((folder) => folderOf(folder, files)),
    taken: {
      ended: listOf(taken['ended'], 'taken.ended').map(flagOf),
      replaced: listOf(taken['replaced'], 'taken.replaced').map(flagOf),
    },
    ...paths,
    ...runBy,
  }
}

function runByOf({ systemd, staticPod }: JsonObject): HubRunner {
  if (systemd === undefined) return { staticPod: pathOf(staticPod, 'staticPod') }
  if (systemd !== true) throw new MalformedRecord('systemd is not true')
  return { systemd }
}

/** Files that a join may write besides those of the hub. */
const optional: readonly string[] = [
  keptPortsFile,
  ...Object.values(dummyUnitPaths),
  ...hostCommandPaths,
]

/** A join writes these files and no others. */
function checkFiles(files: readonly RecordedFile[], own: readonly string[]): void {
  const found = files.map(({ path }) => path)
  const other = found.find(
    (path) => ![...own, ...optional].includes(path) && posix.basename(path) !== loopbackName,
  )
  if (other !== undefined) throw new MalformedRecord(`join does not write ${JSON.stringify(other)}`)
  const missing = own.find((path) => !found.includes(path))
  if (missing !== undefined) throw new MalformedRecord(`files does not have ${missing}`)
  if (new Set(found).size < found.length) throw new MalformedRecord('files has a path twice')
}

function fileOf(value: Json, index: number): RecordedFile {
  const name = `files[${index}]`
  const file = objectOf(value, name)
  const written = listOf(file['written'], `${name}.written`)
  return {
    path: pathOf(file['path'], `${name}.path`),
    original: originalOf(file['original'], `${name}.original`),
    written: written.map((sum) => textOf(sum, `${name}.written`, checksum)),
  }
}

function originalOf(value: Json | undefined, name: string): RecordedFile['original'] {
  if (value === null) return null
  const original = objectOf(value, name)
  return {
    sha256: textOf(original['sha256'], `${name}.sha256`, checksum),
    mode: numberOf(original['mode'], `${name}.mode`, 0o7777),
    uid: numberOf(original['uid'], `${name}.uid`, 0xffff_ffff),
    gid: numberOf(original['gid'], `${name}.gid`, 0xffff_ffff),
  }
}

/** A folder that join made is above one of its files. */
function folderOf(value: Json, files: readonly RecordedFile[]): string {
  const folder = pathOf(value, 'folders')
  if (files.some(({ path }) => path.startsWith(`${folder}/`))) return folder
  throw new MalformedRecord(`join made no folder ${JSON.stringify(folder)}`)
}

/** A flag that needs no quotes among the kubelet's flags. */
const flagOf = (value: Json): string => textOf(value, 'taken', /^-[^\s"'\\$`]+$/)
