import { posix } from 'node:path'
import type { HubRunner } from '../join/hub-files.ts'
import type { NodeFiles } from '../join/node-files.ts'
import { RecordFile } from '../join/record-file.ts'
import type { YurthubStart } from './yurthub-start.ts'
import type { HubPorts } from '../join/static-pod.ts'

/**
 * How far an adoption has come: yurthub may still run; it has ended, and the hub may run; done; or
 * on the way back, which ends with the removal of the record.
 */
type Phase = 'adopting' | 'starting' | 'adopted' | 'rolling-back'

/** The record by which an adoption is undone. It is on the disk before the first file changes. */
export interface AdoptionRecord {
  readonly version: 1
  readonly phase: Phase
  /** The file that starts yurthub. */
  readonly yurthub: string
  /** How it does: a yurthub of systemd does not run any more where an adoption goes on. */
  readonly start: YurthubStart
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

/** The record of the adoption of this node. */
export class Adoption extends RecordFile<AdoptionRecord> {
  constructor(files: NodeFiles, rootDir: string) {
    const folder = `${rootDir}/adopted`
    super(
      files,
      folder,
      `restore it from a backup, or rename yurthub's files back by hand (.NAME.nodehub-adopted, docs/migrate-from-yurthub.md) and remove ${folder}`,
    )
  }
}
