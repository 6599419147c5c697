import { posix } from 'node:path'
import type { Json } from '../../api/kube/json.ts'
import { hostCommandPaths } from '../join/host-command.ts'
import { hubPaths, type HubRunner } from '../join/hub-files.ts'
import type { NodeFiles } from '../join/node-files.ts'
import {
  checksum,
  listOf,
  MalformedRecord,
  numberOf,
  objectOf,
  parsedRecord,
  pathOf,
  textOf,
} from '../join/record-fields.ts'
import { RecordFile } from '../join/record-file.ts'
import type { HubPorts } from '../join/static-pod.ts'

/**
 * How far an adoption has come: yurthub may still run; it has ended, and the hub may run; done; or
 * on the way back, which ends with the removal of the record.
 */
const phases = ['adopting', 'starting', 'adopted', 'rolling-back'] as const

/** The record by which an adoption is undone. It is on the disk before the first file changes. */
export interface AdoptionRecord {
  readonly version: 1
  readonly phase: (typeof phases)[number]
  /** The file that starts yurthub. */
  readonly yurthub: string
  readonly runBy: HubRunner
  /** Paths of yurthub that are renamed within their folders, to `asideName`. */
  readonly aside: readonly string[]
  /** The paths that adopt writes, with the checksum of the content; of a link `null`. */
  readonly written: readonly { readonly path: string; readonly sha256: string | null }[]
  /** Folders that adopt makes, the innermost last. */
  readonly folders: readonly string[]
  readonly ports: HubPorts
}

/**
 * The name under which a file of yurthub waits for the way back. It is hidden: kubelets and systemd
 * leave it alone.
 */
export const asideName = (path: string): string => `.${posix.basename(path)}.nodehub-adopted`

/** The path of such a file. */
export const asideOf = (path: string): string => `${posix.dirname(path)}/${asideName(path)}`

/** The folder of the record in the hub's own. */
const folderIn = (rootDir: string): string => `${rootDir}/adopted`

/** The record of the adoption of this node. */
export class Adoption {
  readonly #files: NodeFiles
  readonly #folder: string
  readonly #record: RecordFile<AdoptionRecord>

  constructor(files: NodeFiles, rootDir: string) {
    this.#files = files
    this.#folder = folderIn(rootDir)
    this.#record = new RecordFile(files, `${this.#folder}/record.json`, {
      parse: (text) => parseAdoptionRecord(text, rootDir),
      advice: `restore it from a backup, or rename yurthub's files back by hand (.NAME.nodehub-adopted, docs/migrate-from-yurthub.md) and remove ${this.#folder}`,
    })
  }

  /** `undefined` where the node is not adopted. Throws where the record cannot be understood. */
  read(): AdoptionRecord | undefined {
    return this.#record.read()
  }

  write(record: AdoptionRecord): void {
    this.#files.within(this.#folder, 0o700, () => undefined)
    this.#record.write(record)
  }

  /** The last step of a roll back. */
  forget(): void {
    this.#record.remove()
    this.#files.removeFolder(this.#folder)
  }
}

/**
 * The record in its text. Throws `MalformedRecord` where anything in it is not as adopt writes it:
 * by it files of the node are renamed and removed.
 */
function parseAdoptionRecord(text: string, rootDir: string): AdoptionRecord {
  const record = objectOf(parsedRecord(text), 'the whole')
  if (record['version'] !== 1) throw new MalformedRecord('it is of another release of nodehub')
  const phase = phases.find((each) => each === record['phase'])
  if (phase === undefined) throw new MalformedRecord('phase is none that adopt writes')
  const by = objectOf(record['runBy'], 'runBy')
  const runBy: HubRunner =
    by['systemd'] === true ? { systemd: true } : { staticPod: pathOf(by['staticPod'], 'staticPod') }
  const ports = objectOf(record['ports'], 'ports')
  const port = (name: string): number => numberOf(ports[name], `ports.${name}`, 65_535)
  const written = listOf(record['written'], 'written').map((value) => writtenOf(value))
  const own = [...hubPaths(runBy), ...hostCommandPaths]
  const other = written.find(
    ({ path }) => !own.includes(path) && !path.startsWith(`${rootDir}/pki/`),
  )
  if (other !== undefined) throw new MalformedRecord(`adopt does not write ${other.path}`)
  const folders = listOf(record['folders'], 'folders').map((folder) => pathOf(folder, 'folders'))
  const stray = folders.find((folder) => !own.some((path) => path.startsWith(`${folder}/`)))
  if (stray !== undefined) throw new MalformedRecord(`adopt made no folder ${stray}`)
  const aside = listOf(record['aside'], 'aside').map((path) => pathOf(path, 'aside'))
  const foreign = aside.find((path) => !/^yurt-?hub/.test(posix.basename(path)))
  if (foreign !== undefined) throw new MalformedRecord(`${foreign} is no file of yurthub`)
  return {
    version: 1,
    phase,
    yurthub: pathOf(record['yurthub'], 'yurthub'),
    runBy,
    aside,
    written,
    folders,
    ports: { proxy: port('proxy'), secure: port('secure'), ops: port('ops') },
  }
}

function writtenOf(value: Json): AdoptionRecord['written'][number] {
  const file = objectOf(value, 'written')
  const { sha256 } = file
  return {
    path: pathOf(file['path'], 'written'),
    sha256: sha256 === null ? null : textOf(sha256, 'written', checksum),
  }
}
