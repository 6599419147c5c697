import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defaultRootDir } from '../config/root-dir.ts'
import { boolean, objectName, optional, text, type ValueType } from '../config/value.ts'
import { systemdSocket } from '../node/join/unit-restart.ts'
import { commandFlag, type FlagValues } from './command-flags.ts'

/** An absolute path on the node. */
export const absolutePath: ValueType<string> = {
  placeholder: 'PATH',
  parse: (path) => (path.startsWith('/') ? { value: path } : { wrong: 'is no absolute path' }),
}

/** A path that the static pod mounts. */
export const mountedPath: ValueType<string> = {
  placeholder: 'PATH',
  parse: (path) =>
    path.startsWith('/etc/kubernetes/')
      ? { value: path }
      : { wrong: 'is not under /etc/kubernetes, which the pod mounts' },
}

/** Where the files of a node are, for join and leave. */
export const nodePathFlags = {
  'root-dir': commandFlag({
    type: absolutePath,
    default: defaultRootDir,
    help: "The hub's state on the node. What stood in the files of the node is kept in joined/ there.",
  }),
  'cni-conf-dir': commandFlag({
    type: optional(absolutePath),
    default: undefined,
    defaultShown: "what the container runtime's configuration says",
    help: 'Where the container runtime looks for its network.',
  }),
  root: commandFlag({
    type: text('FOLDER'),
    default: '/',
    help: 'Where the root of the node is, for an image of one: all other paths are below it, as the node sees them.',
  }),
  restart: commandFlag({
    type: boolean,
    default: false,
    help: 'Restart the kubelet with systemctl, and start or stop a hub that systemd runs; without it, both stay as they are.',
  }),
  'dry-run': commandFlag({
    type: boolean,
    default: false,
    help: 'Change nothing, and print what would change.',
  }),
}

/** The name of the node, for join and leave. */
export const nodeNameFlag = commandFlag({
  type: optional(objectName),
  default: undefined,
  defaultShown: "the one in the kubelet's certificate",
  help: 'The name of the node.',
})

/** Whether the hub reports, for join and adopt. */
export const reportFlag = commandFlag({
  type: boolean,
  default: false,
  help: 'Start the hub with --offline-ready-condition: it reports on its Node.',
})

/** Whether systemd runs there: on this node, or on the host whose root is mounted at `root`. */
export const canRestart = (root: string): boolean =>
  root === '/' || existsSync(join(root, systemdSocket))

/** Mistakes in the combination of flags. */
export const conflictingFlags = ({ restart, root }: FlagValues<typeof nodePathFlags>): string[] =>
  restart && !canRestart(root)
    ? ['--restart is for this node or a host that runs systemd, and --root is neither']
    : []
