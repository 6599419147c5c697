import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Who may do what with a file. */
export interface Rights {
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/** A file as it is. */
export interface NodeFile extends Rights {
  readonly content: Buffer
}

/** Nothing that a node keeps among its configuration is larger. */
const largest = 4 * 1024 * 1024

/**
 * The files of a node, or of an image of one that is mounted at `root`: every path is as the node itself has it, and so are the targets of
 * links. Nothing here waits, so that whoever is killed is killed between two steps, and not within one.
 */
export class NodeFiles {
  readonly #root: string

  constructor(root: string) {
    this.#root = resolve(root)
  }

  /** Where a path of the node is for this process, links followed; the last part of it need not be there. */
  real(path: string): string {
    let pending = path.split('/').filter(Boolean)
    let at = ''
    for (let links = 0; pending.length > 0;) {
      const [part = '', ...rest] = pending
      pending = rest
      if (part === '.') continue
      if (part === '..') {
        at = dirname(at) === '/' || at === '' ? '' : dirname(at)
        continue
      }
      const here = `${at}/${part}`
      const target = linkAt(join(this.#root, here))
      if (target === undefined) {
        at = here
        continue
      }
      links += 1
      if (links > 40) throw new Error(`${path}: too many links`)
      if (target.startsWith('/')) at = ''
      pending = [...target.split('/').filter(Boolean), ...pending]
    }
    return join(this.#root, at)
  }

  /** `undefined` where there is none. Throws where it cannot be read, or is no file. */
  read(path: string): NodeFile | undefined {
    const real = this.real(path)
    const stat = statSync(real, { throwIfNoEntry: false })
    if (stat === undefined) return undefined
    if (!stat.isFile()) throw new Error(`${path} is no file`)
    if (stat.size > largest) throw new Error(`${path} is larger than 4 MiB`)
    return {
      content: readFileSync(real),
      mode: stat.mode & 0o7777,
      uid: stat.uid,
      gid: stat.gid,
    }
  }

  /** The text of a file that has to be there. */
  text(path: string): string {
    const file = this.read(path)
    if (file === undefined) throw new Error(`${path} is not there`)
    return file.content.toString()
  }

  /** The names in a folder; none where there is no folder. */
  names(folder: string): readonly string[] {
    const real = this.real(folder)
    if (statSync(real, { throwIfNoEntry: false })?.isDirectory() !== true) return []
    return readdirSync(real).toSorted()
  }

  /** The folders above a path that are missing, the outermost first. */
  missingAbove(path: string): readonly string[] {
    const folder = dirname(path)
    if (folder === '/' || statSync(this.real(folder), { throwIfNoEntry: false })) return []
    return [...this.missingAbove(folder), folder]
  }

  /**
   * Writes a file whole or not at all, on the disk when this returns; where the path is a link, what it points to. What is half written
   * has a name that begins with a dot: kubelets and container runtimes read every other file of their folders.
   */
  write(path: string, { content, mode, uid, gid }: NodeFile): void {
    const real = this.real(path)
    this.#makeFolders(dirname(real))
    const beside = besideOf(real)
    const handle = openSync(beside, 'w', 0o600)
    try {
      for (let done = 0; done < content.byteLength;) done += writeSync(handle, content, done)
      fchownSync(handle, uid, gid)
      fchmodSync(handle, mode)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(beside, real)
    syncFolder(dirname(real))
  }

  /** Removes what a write that was broken off left beside a file. */
  sweep(path: string): void {
    rmSync(besideOf(this.real(path)), { force: true })
  }

  /** Removes a file, and what a write that was broken off left of it. Not being there is fine. */
  remove(path: string): void {
    const real = this.real(path)
    rmSync(besideOf(real), { force: true })
    rmSync(real, { force: true })
    if (statSync(dirname(real), { throwIfNoEntry: false })) syncFolder(dirname(real))
  }

  /** Removes a folder if it is empty. */
  removeFolder(path: string): void {
    try {
      rmdirSync(this.real(path))
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(code)) throw error
    }
  }

  #makeFolders(real: string): void {
    if (statSync(real, { throwIfNoEntry: false })?.isDirectory()) return
    this.#makeFolders(dirname(real))
    mkdirSync(real, { mode: 0o755 })
    syncFolder(dirname(real))
  }
}

const besideOf = (real: string): string => join(dirname(real), `.${basename(real)}.nodehub`)

/** What a link points to; `undefined` for what is none. */
function linkAt(real: string): string | undefined {
  const stat = lstatSync(real, { throwIfNoEntry: false })
  return stat?.isSymbolicLink() ? readlinkSync(real) : undefined
}

function syncFolder(real: string): void {
  const handle = openSync(real, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
