import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
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

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY, W_OK } = constants

/** Write permission for others, and the set-id and sticky bits. */
const writeByOthers = 0o7022

/**
 * The files of a node, or of an image of one that is mounted at `root`: every path is as the node
 * itself has it, and so are the targets of links. An image is not trusted: each folder of a path is
 * opened in the one before it, and a link is read and walked from `root`, never followed by the
 * system, so that no file outside is read or written, whatever links there are and whenever one is
 * exchanged. No method here waits, so that a process that is killed ends between two steps, and not
 * within one.
 */
export class NodeFiles {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  /** `undefined` where there is none. Throws where it cannot be read, or is no file. */
  read(path: string): NodeFile | undefined {
    using place = this.#find(path)
    using file = place && regularFile(place.path, path)
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
    const name = basename(path)
    return this.names(dirname(path)).includes(name)
  }

  /**
   * Renames a file within its folder, durably; a link itself, not its target. Content, owner, mode
   * and times stay. Replaces a file with the new name.
   */
  rename(path: string, name: string): void {
    using place = this.#find(dirname(path))
    if (!place?.enter()) throw new Error(`${path} is not there`)
    renameSync(place.at(basename(path)), place.at(name))
    place.sync()
  }

  /** Removes a file, or a link itself, not its target. A missing one is no failure. */
  unlink(path: string): void {
    using place = this.#find(dirname(path))
    if (!place?.enter()) return
    removeFile(place.at(basename(path)))
    place.sync()
  }

  /** Makes a link with this target, or has an existing one lead there, durably. */
  link(path: string, target: string): void {
    using place = this.#find(dirname(path), newFolder)
    if (!place?.enter(newFolder)) throw new Error(`${dirname(path)} is no folder`)
    const beside = place.at(`.${basename(path)}.nodehub`)
    removeFile(beside)
    symlinkSync(target, beside)
    renameSync(beside, place.at(basename(path)))
    place.sync()
  }

  /** The names in a folder; none where there is no folder. */
  names(folder: string): readonly string[] {
    using place = this.#find(folder)
    return place?.enter() ? readdirSync(place.folder).toSorted() : []
  }

  /** Whether a new file can be written there; missing folders are made then. */
  canWrite(path: string): boolean {
    using place = this.#find(dirname(this.missingAbove(path)[0] ?? path))
    if (!place?.enter()) return false
    try {
      accessSync(place.folder, W_OK)
      return true
    } catch {
      return false
    }
  }

  /** The folders above a path that are missing, the outermost first. */
  missingAbove(path: string): readonly string[] {
    const folder = dirname(path)
    if (folder === '/' || this.#isThere(folder)) return []
    return [...this.missingAbove(folder), folder]
  }

  /**
   * Writes a file atomically and durably; where the path is a link, the file that it points to. The
   * temporary file has a name that begins with a dot: kubelets and container runtimes read every
   * other file of their folders.
   */
  write(path: string, { content, mode, uid, gid }: NodeFile): void {
    using place = this.#find(path, newFolder)
    if (!place) throw new Error(`${path} cannot be written: a folder above it is none`)
    removeFile(place.beside)
    const handle = openSync(place.beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      for (let done = 0; done < content.byteLength;) done += writeSync(handle, content, done)
      fchownSync(handle, uid, gid)
      fchmodSync(handle, mode)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(place.beside, place.path)
    place.sync()
  }

  /**
   * Makes a folder with this mode, and the missing ones above it. An existing folder gets the
   * current user as its owner, and loses write permission for others; it stays readable as it was.
   */
  makeFolder(path: string, mode: number): void {
    using place = this.#made(path, mode)
    place.own((found) => found & ~writeByOthers)
  }

  /**
   * Makes a folder, or changes an existing one, with this mode and the current user as its owner.
   * Calls `act` with a path to the open folder, which stays valid while `act` runs even if the
   * folder is renamed. What `act` does below it must follow no links.
   */
  within<T>(path: string, mode: number, act: (folder: string) => T): T {
    using place = this.#made(path, mode)
    place.own(() => mode)
    return act(place.folder)
  }

  #made(path: string, mode: number): ResolvedPath {
    using parts = new DisposableStack()
    const place = this.#find(path, mode)
    if (place) parts.use(place)
    if (!place?.enter(mode)) throw new Error(`${path} is no folder`)
    parts.move()
    return place
  }

  /** Removes the remains of an interrupted write beside a file. */
  sweep(path: string): void {
    using place = this.#find(path)
    if (place) removeFile(place.beside)
  }

  /** Removes a file, and the remains of an interrupted write. A missing one is no failure. */
  remove(path: string): void {
    using place = this.#find(path)
    if (!place) return
    removeFile(place.beside)
    removeFile(place.path)
    place.sync()
  }

  /** Removes a folder if it is empty. */
  removeFolder(path: string): void {
    using place = this.#find(path)
    if (!place) return
    ignoring(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'], () => rmdirSync(place.path))
  }

  #isThere(path: string): boolean {
    using place = this.#find(path)
    return place !== undefined && lstatSync(place.path, { throwIfNoEntry: false }) !== undefined
  }

  /**
   * Resolves a path, with its links; the last part need not exist. Missing folders above it are
   * made with the mode `missing`; without it, and where one of them is no folder, the result is
   * `undefined`.
   */
  #find(path: string, missing?: number): ResolvedPath | undefined {
    using parts = new DisposableStack()
    const place = parts.use(new ResolvedPath(this.#root))
    let pending = partsOf(path)
    for (let links = 0; pending.length > 0;) {
      const [part = '', ...rest] = pending
      pending = rest
      if (part === '..') place.leave()
      if (part === '.' || part === '..') continue
      const target = linkAt(place.at(part))
      if (target !== undefined) {
        links += 1
        if (links > mostLinks) throw new Error(`${path}: too many links`)
        if (target.startsWith('/')) place.leaveAll()
        pending = [...partsOf(target), ...pending]
      } else if (rest.length === 0) place.name = part
      else {
        place.name = part
        if (!place.enter(missing)) return undefined
      }
    }
    parts.move() // the caller that gets the path closes it
    return place
  }
}

/** For folders that are made on the way to a file. */
const newFolder = 0o755

/**
 * Folders of the node that are open, each found in the one before it, and a name in the last of
 * them.
 */
class ResolvedPath implements Disposable {
  readonly #handles: number[]
  name = '.'

  constructor(root: string) {
    const handle = openSync(root, O_RDONLY | O_DIRECTORY)
    this.#handles = [handle]
    if (existsSync(this.folder)) return
    closeSync(handle)
    throw new Error('/proc is not mounted, by which folders are found that are open')
  }

  get #last(): number {
    return this.#handles.at(-1) ?? -1
  }

  /** A path of this process: Node has no openat(2), and this leads to the open folder itself. */
  get folder(): string {
    return `/proc/self/fd/${this.#last}`
  }

  get path(): string {
    return this.at(this.name)
  }

  /** The path of the temporary file during a write. */
  get beside(): string {
    return this.at(`.${this.name}.nodehub`)
  }

  at(name: string): string {
    return `${this.folder}/${name}`
  }

  /**
   * Opens the folder of this name, and makes it with the mode `missing` if that is given. `false`:
   * there is none.
   */
  enter(missing?: number): boolean {
    const flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
    let handle = opened(this.path, flags)
    if (handle === undefined && missing !== undefined) {
      makeFolder(this.path, missing)
      this.sync()
      handle = opened(this.path, flags)
    }
    if (handle === undefined) return false
    this.#handles.push(handle)
    this.name = '.'
    return true
  }

  /**
   * Gives the last folder to the current user, with the mode that `mode` returns for the existing
   * one.
   */
  own(mode: (found: number) => number): void {
    const found = fstatSync(this.#last)
    const rights = ownRights(mode(found.mode & 0o7777))
    if (found.uid !== rights.uid || found.gid !== rights.gid)
      fchownSync(this.#last, rights.uid, rights.gid)
    if ((found.mode & 0o7777) !== rights.mode) fchmodSync(this.#last, rights.mode)
  }

  /** To the folder above, which for the root is the root. */
  leave(): void {
    if (this.#handles.length > 1) closeSync(this.#handles.pop() ?? -1)
  }

  leaveAll(): void {
    while (this.#handles.length > 1) this.leave()
  }

  /** A new name is on the disk when its folder is. */
  sync(): void {
    fsyncSync(this.#last)
  }

  [Symbol.dispose](): void {
    for (const handle of this.#handles.splice(0)) closeSync(handle)
  }
}

const partsOf = (path: string): string[] => path.split('/').filter(Boolean)

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? ''

/** `undefined` where nothing is there, or no folder where there is to be one. */
function opened(path: string, flags: number): number | undefined {
  return ignoring(['ENOENT', 'ENOTDIR'], () => openSync(path, flags))
}

/** The target of a link; `undefined` where the path is no link. */
const linkAt = (path: string): string | undefined =>
  ignoring(['ENOENT', 'EINVAL'], () => readlinkSync(path))

const removeFile = (path: string): void => ignoring(['ENOENT'], () => unlinkSync(path))

const makeFolder = (path: string, mode: number): void =>
  ignoring(['EEXIST'], () => mkdirSync(path, mode))

/** The result of `act`; `undefined` where it fails with one of these codes. */
function ignoring<T>(codes: readonly string[], act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (codes.includes(codeOf(error))) return undefined
    throw error
  }
}
