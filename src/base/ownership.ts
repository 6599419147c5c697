import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { isAbsolute, join, parse, resolve, sep } from 'node:path'

/** Group and others. */
const writableByOthers = 0o022
/** In such a folder a user may not rename or remove another's files. */
const sticky = 0o1000

/** The kernel's limit of links in a path (path_resolution(7)). */
const mostLinks = 40

/**
 * Why a file or folder of code must not be run: another user than root and the hub's own may write
 * or replace it. Checks it and each folder and link on its path, as ssh does for the files that it
 * reads (OpenSSH misc.c, safe_path). `undefined`: it is trusted. Throws if it cannot be inspected.
 * `root`: the mount point of a node's image, whose paths these are.
 */
export function whyUntrusted(path: string, root = '/'): string | undefined {
  const trusted = new Set([0, process.getuid?.() ?? 0])
  const way = [...wayTo(resolve(path), root)]
  for (const [at, { place, uid, mode, isLink }] of way.entries()) {
    if (!trusted.has(uid)) return `${place} belongs to the user ${uid}, who could change it`
    const isShared = at < way.length - 1 && (mode & sticky) !== 0
    if (!isLink && (mode & writableByOthers) !== 0 && !isShared && !isReadOnly(join(root, place)))
      return `${place} may be written by others than its owner (mode ${(mode & 0o7777).toString(8)})`
  }
  return undefined
}

/**
 * The same for a folder with all its content, following links as the node itself does; each path is
 * checked once.
 */
export function whyTreeUntrusted(folder: string, root = '/'): string | undefined {
  const seen = new Set<string>()
  const left = [folder]
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    const untrusted = whyUntrusted(path, root)
    if (untrusted !== undefined) return untrusted
    const { place, isFolder } = endOf(path, root)
    if (!isFolder || seen.has(place)) continue
    seen.add(place)
    left.push(...readdirSync(join(root, place)).map((name) => join(place, name)))
  }
  return undefined
}

/** The target of a path. */
function endOf(path: string, root: string): { readonly place: string; readonly isFolder: boolean } {
  const { place = path } = [...wayTo(path, root)].at(-1) ?? {}
  return { place, isFolder: lstatSync(join(root, place)).isDirectory() }
}

interface PathComponent {
  readonly place: string
  readonly uid: number
  readonly mode: number
  readonly isLink: boolean
}

/**
 * The folders and links that the kernel resolves for an absolute path of the node at `root`, the
 * target last.
 */
function* wayTo(path: string, root: string): Generator<PathComponent> {
  const left = [parse(path).root, ...namesIn(path)]
  let at = ''
  let links = 0
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const place = resolve('/', at, name)
    const status =
      links > 0
        ? lstatSync(join(root, place), { throwIfNoEntry: false })
        : lstatSync(join(root, place))
    if (!status) throw new Error(`${path} leads to ${place}, which is not there`)
    const isLink = status.isSymbolicLink()
    yield { place, uid: status.uid, mode: status.mode, isLink }
    if (!isLink) at = place
    else if (++links > mostLinks) throw new Error(`${path} leads through too many links`)
    else {
      const target = readlinkSync(join(root, place))
      left.unshift(...(isAbsolute(target) ? [parse(target).root] : []), ...namesIn(target))
    }
  }
}

const namesIn = (path: string): string[] => path.split(sep).filter((name) => name !== '')

/** A mounted ConfigMap is a world-writable folder on a read-only file system. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EROFS'
  }
}
