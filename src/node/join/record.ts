import { hash } from 'node:crypto'
import type { HubRunner } from './hub-files.ts'
import type { RemovedFlags } from './kubelet-flags.ts'
import { isSameFile, ownRights, type NodeFile, type NodeFiles, type Rights } from './node-files.ts'
import { RecordFile } from './record-file.ts'

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

export const sha256 = (content: Uint8Array): string => hash('sha256', content)

/** The record of a join and the originals, in `joined/` of the hub's folder. */
export class JoinArchive extends RecordFile<JoinRecord> {
  constructor(files: NodeFiles, rootDir: string) {
    const folder = `${rootDir}/joined`
    super(
      files,
      folder,
      'restore it from a backup, or roll back by hand what join changed ' +
        `(docs/join.md; what stood there before is in ${folder}/originals) and remove ${folder}`,
    )
  }

  #originalOf(sha256: string): string {
    return `${this.folder}/originals/${sha256}`
  }

  /** Keeps an original; it is there before any record names it. */
  keep(content: Buffer): void {
    for (const folder of [this.folder, `${this.folder}/originals`])
      this.files.ownFolder(folder, 0o700)
    const path = this.#originalOf(sha256(content))
    const own = { content, ...ownRights(0o600) }
    if (!isSameFile(this.files.read(path), own)) this.files.write(path, own)
  }

  /**
   * The original of a file; `undefined`: there was none. Throws where the stored original is
   * damaged or gone: nothing else is written in its place.
   */
  original({ path, original }: RecordedFile): NodeFile | undefined {
    if (original === null) return undefined
    const { sha256: sum, mode, uid, gid } = original
    const kept = this.files.read(this.#originalOf(sum))
    if (kept === undefined || sha256(kept.content) !== sum) {
      throw new Error(
        `${this.#originalOf(sum)} is ${kept === undefined ? 'gone' : 'not what was kept there'}, which is what stood in ${path} ` +
          `before the join: restore it by hand, from a backup or (with sha256 ${sum}) from a node like this one`,
      )
    }
    return { content: kept.content, mode, uid, gid }
  }

  /** Forgets the join: the record goes first, since the originals have no meaning without it. */
  override forget(): void {
    super.forget()
    for (const name of this.files.names(`${this.folder}/originals`))
      this.files.remove(this.#originalOf(name))
    this.files.removeFolder(`${this.folder}/originals`)
    this.files.removeFolder(this.folder)
  }
}
