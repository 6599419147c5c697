import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { oldestNode } from '../../base/own-version.ts'
import type { NodeFiles } from './node-files.ts'
import { whyTreeUntrusted, whyUntrusted } from '../../base/ownership.ts'

/** Where the hub's files are for systemd, and the program that it starts. */
const programFolder = '/opt/nodehub'
export const program = `${programFolder}/dist/src/main.js`

/** The Node that packages install beside these files, and that of a node without a package. */
export const packagedRuntime = `${programFolder}/bin/node`
const installedRuntime = '/usr/local/bin/node'

/** The Node that starts the hub where `isThere` says which files are there. */
const runtimeWhere = (isThere: (path: string) => boolean): string =>
  isThere(packagedRuntime) ? packagedRuntime : installedRuntime

/** The Node for units that this program prints: its own if a package has installed both. */
export const printedRuntime = (): string => runtimeWhere((path) => process.execPath === path)

/** The Node with which units on this node start the hub. */
export const runtimeIn = (files: NodeFiles): string => runtimeWhere((path) => files.isThere(path))

/**
 * Whether systemd runs here, or is installed in an image, together with the files that the units
 * start.
 */
export const canRunBySystemd = (files: NodeFiles, root: string): boolean =>
  isSystemdThere(files, root) && [program, runtimeIn(files)].every((path) => files.isThere(path))

/** Whether systemd runs here, or is installed in an image. */
export function isSystemdThere(files: NodeFiles, root: string): boolean {
  const signs =
    root === '/' ? ['/run/systemd/system'] : ['/usr/lib/systemd/systemd', '/lib/systemd/systemd']
  return signs.some((path) => files.isThere(path))
}

/** Why systemd cannot start the hub on this node, with the remedy; `undefined`: it can. */
export async function whyNoService(files: NodeFiles, root: string): Promise<string | undefined> {
  if (files.read(program) === undefined) {
    return `${program} is not there, which the units start: the packages of docs/install.md install it, bin/assemble.js of a checkout makes /opt/nodehub, and the image has the same in /app`
  }
  const node = runtimeIn(files)
  if (!files.isThere(node)) return `${node} is not there, with which the units start the hub`
  return whyNotRunnable(root, { node })
}

/** A version is printed at once. */
const patienceMs = 10_000

/**
 * Why systemd is not to start the hub as root with the files on the node at `root`, with the
 * remedy: others could change them, or the hub does not run on that Node. `undefined`: it may. The
 * Node of an image is not started.
 */
export async function whyNotRunnable(
  root: string,
  { folder = programFolder, node = installedRuntime } = {},
): Promise<string | undefined> {
  const files = whyTreeUntrusted(folder, root)
  if (files !== undefined)
    return `${files}, and systemd would run it as root: chown -R root:root ${folder} && chmod -R go-w ${folder}, or the same for the folder above it that is named`
  const own = whyUntrusted(node, root)
  if (own !== undefined)
    return `${own}, and systemd would run ${node} as root: give it, and each folder and link on the way to it, to root, with chmod go-w`
  return root === '/' ? whyTooOld(node) : undefined
}

async function whyTooOld(node: string): Promise<string | undefined> {
  const oldest = oldestNode()
  const advice = `put Node ${oldest} or later there`
  try {
    const { stdout } = await promisify(execFile)(node, ['--version'], {
      env: {},
      timeout: patienceMs,
      killSignal: 'SIGKILL',
      maxBuffer: 1_024,
    })
    const version = /^v(\d+)\./.exec(stdout)
    if (version === null) return `${node} does not say that it is Node: ${advice}`
    return Number(version[1]) < oldest
      ? `${node} is Node ${stdout.trim()}, and the hub needs ${oldest} or later: ${advice}`
      : undefined
  } catch (cause) {
    const { code = 'killed' } = cause as { readonly code?: string | number }
    return `${node} does not run (${code}): ${advice}`
  }
}
