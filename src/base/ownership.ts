import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { isAbsolute, join, parse, resolve, sep } from 'node:path'

/** Group and others. */
const writableByOthers = 0o022
/** Whoever may write into such a folder may not touch what is another's there. */
const sticky = 0o1000

/** As many links in a path as the kernel follows (path_resolution(7)). */
const mostLinks = 40

/**
 * Why a file or folder of code is not to be run: others than root and the hub's own user may write
 * it, or put another in its place. As ssh looks at what it reads (OpenSSH misc.c, safe_path): at
 * itself and each folder and link on the way to it. `undefined`: only they may. Throws where it
 * cannot be looked at. `root`: where an image of a node is mounted, whose paths these are.
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
 * The same of a folder and all that is in it, links and what they lead to included, as the node
 * itself has it: each place is looked at once, however many links lead there.
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

/** What a path leads to. */
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
 * What the kernel goes through on the way to an absolute path of the node at `root`, links
 * included, itself last.
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

/** A mounted ConfigMap is a folder that everybody may write, in a file system where nobody can. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EROFS'
  }
}
