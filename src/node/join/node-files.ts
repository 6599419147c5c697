import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeFolder, syncFolder } from '../../base/folder.ts'
import { regularFile } from '../../base/regular-file.ts'

/** The owner and permissions of a file. */
export interface Rights {
  readonly mode: number
  readonly uid: number
  readonly gid: number
}

/** Those of a file of the current user. */
export const ownRights = (mode: number): Rights => ({
  mode,
  uid: process.geteuid?.() ?? 0,
  gid: process.getegid?.() ?? 0,
})

/** A file as it is. */
export interface NodeFile extends Rights {
  readonly content: Buffer
}

/** Whether both are the same, rights included; also where neither is there. */
export function isSameFile(one: NodeFile | undefined, other: NodeFile | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  const { mode, uid, gid, content } = one
  const rights = mode === other.mode && uid === other.uid && gid === other.gid
  return rights && content.equals(other.content)
}

/** No file in a node's configuration is larger. */
const largest = 4 * 1024 * 1024

/** As Linux has it. */
const mostLinks = 40

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY, W_OK } = constants

/** Write permission for others, and the set-id and sticky bits. */
const writeByOthers = 0o7022

/** For folders that are made on the way to a file. */
const newFolder = 0o755

/**
 * The files of a node, or of an image of one that is mounted at `root`: every path is as the node
 * itself has it, and so are the targets of links, so that no file outside is read or written. While
 * a command runs only root may change the folders on the way, as on the node itself. No method here
 * waits, so that a process that is killed ends between two steps, and not within one.
 */
export class NodeFiles {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  /** `undefined` where there is none. Throws where it cannot be read, or is no file. */
  read(path: string): NodeFile | undefined {
    using file = regularFile(this.#place(path), path)
    if (!file) return undefined
    const { mode, uid, gid, size } = file.stat
    if (size > largest) throw new Error(`${path} is larger than 4 MiB`)
    return { content: readFileSync(file.handle), mode: mode & 0o7777, uid, gid }
  }

  /** The text of a file that has to be there. */
  text(path: string): string {
    const file = this.read(path)
    if (file === undefined) throw new Error(`${path} is not there`)
    return file.content.toString()
  }

  /** Whether anything has this name, a link included that leads nowhere. */
  isThere(path: string): boolean {
    return this.names(dirname(path)).includes(basename(path))
  }

  /**
   * Renames a file within its folder, durably; a link itself, not its target. Content, owner, mode
   * and times stay. Replaces a file with the new name.
   */
  rename(path: string, name: string): void {
    const entry = this.#entry(path)
    renameSync(entry, join(dirname(entry), name))
    syncFolder(dirname(entry))
  }

  /** Removes a file, or a link itself, not its target. A missing one is no failure. */
  unlink(path: string): void {
    removeDurably(this.#entry(path))
  }

  /** Makes a link with this target, or has an existing one lead there, durably. */
  link(path: string, target: string): void {
    const entry = this.#entry(path)
    makeFolder(dirname(entry), newFolder)
    removeFile(besideOf(entry))
    symlinkSync(target, besideOf(entry))
    renameSync(besideOf(entry), entry)
    syncFolder(dirname(entry))
  }

  /** The names in a folder; none where there is no folder. */
  names(folder: string): readonly string[] {
    return ignoring(absent, () => readdirSync(this.#place(folder)).toSorted()) ?? []
  }

  /** Whether a new file can be written there; missing folders are made then. */
  canWrite(path: string): boolean {
    const folder = dirname(this.missingAbove(path)[0] ?? path)
    try {
      // With a slash: a file there is no folder.
      accessSync(`${this.#place(folder)}/`, W_OK)
      return true
    } catch {
      return false
    }
  }

  /** The folders above a path that are missing, the outermost first. */
  missingAbove(path: string): readonly string[] {
    const folder = dirname(path)
    if (folder === '/' || existsSync(this.#place(folder))) return []
    return [...this.missingAbove(folder), folder]
  }

  /**
   * Writes a file atomically and durably; where the path is a link, the file that it points to. The
   * temporary file has a name that begins with a dot: kubelets and container runtimes read every
   * other file of their folders.
   */
  write(path: string, { content, mode, uid, gid }: NodeFile): void {
    const place = this.#place(path)
    const beside = besideOf(place)
    makeFolder(dirname(place), newFolder)
    removeFile(beside)
    const handle = openSync(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      for (let done = 0; done < content.byteLength;) done += writeSync(handle, content, done)
      fchownSync(handle, uid, gid)
      fchmodSync(handle, mode)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(beside, place)
    syncFolder(dirname(place))
  }

  /**
   * Makes a folder with this mode, and the missing ones above it. An existing folder gets the
   * current user as its owner, and loses write permission for others; it stays readable as it was.
   */
  makeFolder(path: string, mode: number): void {
    own(this.#made(path, mode), (found) => found & ~writeByOthers)
  }

  /**
   * Makes a folder, or changes an existing one, with this mode and the current user as its owner.
   * Returns where this process finds it.
   */
  ownFolder(path: string, mode: number): string {
    const place = this.#made(path, mode)
    own(place, () => mode)
    return place
  }

  #made(path: string, mode: number): string {
    const place = this.#place(path)
    makeFolder(place, mode)
    return place
  }

  /** Removes the remains of an interrupted write beside a file. */
  sweep(path: string): void {
    removeFile(besideOf(this.#place(path)))
  }

  /** Removes a file, and the remains of an interrupted write. A missing one is no failure. */
  remove(path: string): void {
    const place = this.#place(path)
    removeFile(besideOf(place))
    removeDurably(place)
  }

  /** Removes a folder if it is empty. */
  removeFolder(path: string): void {
    ignoring([...absent, 'ENOTEMPTY', 'EEXIST'], () => rmdirSync(this.#place(path)))
  }

  /** Where this process finds what has that name on the node, also a link that is there. */
  #entry(path: string): string {
    return join(this.#place(dirname(path)), basename(path))
  }

  /** Where this process finds what the path leads to by links; it need not exist. */
  #place(path: string): string {
    const pending = partsOf(path)
    let at = '/'
    let links = 0
    for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
      const next = join(at, part)
      const target = linkAt(join(this.#root, next))
      if (target === undefined) at = next
      else {
        links += 1
        if (links > mostLinks) throw new Error(`${path}: too many links`)
        if (target.startsWith('/')) at = '/'
        pending.unshift(...partsOf(target))
      }
    }
    return join(this.#root, at)
  }
}

/** Gives a folder to the current user, with the mode that `mode` returns for the existing one. */
function own(folder: string, mode: (found: number) => number): void {
  const found = statSync(folder)
  const rights = ownRights(mode(found.mode & 0o7777))
  if (found.uid !== rights.uid || found.gid !== rights.gid)
    chownSync(folder, rights.uid, rights.gid)
  if ((found.mode & 0o7777) !== rights.mode) chmodSync(folder, rights.mode)
}

/** The path of the temporary file during a write. */
const besideOf = (place: string): string => join(dirname(place), `.${basename(place)}.nodehub`)

const partsOf = (path: string): string[] => path.split('/').filter(Boolean)

/** The codes where nothing is there, or no folder where there is to be one. */
const absent = ['ENOENT', 'ENOTDIR']

/** The target of a link; `undefined` where the path is no link. */
const linkAt = (path: string): string | undefined =>
  ignoring([...absent, 'EINVAL'], () => readlinkSync(path))

const removeFile = (path: string): void => ignoring(absent, () => unlinkSync(path))

function removeDurably(path: string): void {
  removeFile(path)
  syncFolder(dirname(path))
}

/** The result of `act`; `undefined` where it fails with one of these codes. */
function ignoring<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (codes.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
