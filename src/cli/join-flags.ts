import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ownVersion } from '../base/own-version.ts'
import { defaultRootDir } from '../config/root-dir.ts'
import { option, type ValuesOf } from '../config/option.ts'
import { flagsOfHub } from '../config/options.ts'
import { boolean, matching, objectName, text } from '../config/value.ts'
import type { HubPorts } from '../node/join/static-pod.ts'
import { systemdSocket } from '../node/join/unit-restart.ts'

/** An absolute path on the node. */
export const absolutePath = matching('PATH', /^\//, 'is no absolute path')

/** A path that the static pod mounts. */
export const mountedPath = matching(
  'PATH',
  /^\/etc\/kubernetes\//,
  'is not under /etc/kubernetes, which the pod mounts',
)

/** For commands that act, as others did in 0.2.0 with this flag alone. */
export const applyFlag = option({
  type: boolean,
  group: 'Accepted from earlier releases, without effect',
  help: 'The command acts unless --dry-run is given.',
})

/** Where the files of a node are, for join and leave. */
export const nodePathFlags = {
  'root-dir': option({
    type: absolutePath,
    default: defaultRootDir,
    help: "The folder of the hub's state on the node. Its joined/ has the former contents of the node's files.",
  }),
  'cni-conf-dir': option({
    type: absolutePath,
    defaultShown: "what the container runtime's configuration says",
    help: 'Where the container runtime looks for its network.',
  }),
  root: option({
    type: text('FOLDER'),
    default: '/',
    help: "The folder of the node's root, as in an image of a node: all other paths are relative to it.",
  }),
  restart: option({
    type: boolean,
    help: 'Restart the kubelet with systemctl, and start or stop a hub that systemd runs; without it, both stay as they are.',
  }),
  'dry-run': option({
    type: boolean,
    help: 'Change nothing, and print what would change.',
  }),
  apply: applyFlag,
}

/** The kubelet's rotated certificate and key, in one file. */
export const kubeletPair = '/var/lib/kubelet/pki/kubelet-client-current.pem'

/**
 * The image of the hub, for every command that writes or prints it. The default is what buildah
 * calls an image where it is built: to a kubelet, a name without a registry is one of docker.io.
 */
export const hubImageFlag = option({
  type: text('IMAGE'),
  default: `localhost/nodehub:${ownVersion()}`,
  help: "The hub's image.",
})

/** The kubelet's folder, for join and adopt. */
export const manifestFolderFlag = option({
  type: absolutePath,
  default: '/etc/kubernetes/manifests',
  help: 'Where the kubelet looks for static pods.',
})

/** The ports of the hub, for join and manifests. */
export const hubPortFlags = flagsOfHub('proxy-port', 'proxy-secure-port', 'serve-port')

export const portsOf = (values: ValuesOf<typeof hubPortFlags>): HubPorts => ({
  proxy: values['proxy-port'],
  secure: values['proxy-secure-port'],
  ops: values['serve-port'],
})

/** The name of the node, for join and leave. */
export const nodeNameFlag = option({
  type: objectName,
  defaultShown: "the one in the kubelet's certificate",
  help: 'The name of the node.',
})

/** For join and manifests. */
export const hubKubeconfigFlag = option({
  type: mountedPath,
  defaultShown: "the kubelet's own certificate",
  help: "The hub's credentials, under /etc/kubernetes.",
})

/** Whether the hub reports, for join and adopt. */
export const offlineReadyFlag = option({
  type: boolean,
  aliases: ['report'],
  help: 'Start the hub with this flag: it writes the condition OfflineReady of its Node.',
})

/** Whether systemd runs there: on this node, or on the host whose root is mounted at `root`. */
export const canRestart = (root: string): boolean =>
  root === '/' || existsSync(join(root, systemdSocket))

/** A mistake if there is no folder of the name. */
export const missingRoot = ({ root }: { readonly root: string }): string[] =>
  existsSync(root) ? [] : [`--root: ${root} is not there`]

/** Mistakes in the combination of flags. */
export const conflictingFlags = ({ restart, root }: ValuesOf<typeof nodePathFlags>): string[] => [
  ...missingRoot({ root }),
  ...(restart && !canRestart(root)
    ? ['--restart is for this node or a host that runs systemd, and --root is neither']
    : []),
]
