import type { NodeFiles } from './node-files.ts'
import type { HubPorts } from './static-pod.ts'

/** Below it the kernel keeps ports for root, unless it is set otherwise. */
const usualStart = 1024

const setting = 'net.ipv4.ip_unprivileged_port_start'

/** The file by which the kernel keeps a hub's ports for root from each boot on. */
export const keptPortsFile = '/etc/sysctl.d/90-nodehub.conf'

/** Its content. */
export const keptPorts = (
  ports: HubPorts,
): string => `# No program that is not root's takes the hub's ports while it is down.
${setting} = ${highestOf(ports) + 1}
`

/** Applies it at once. */
export const keepPorts = `sysctl -p ${keptPortsFile}`

/** Reverts it before the next boot. */
export const releasePorts = `sysctl -w ${setting}=${usualStart}`

/**
 * Whether the kernel keeps them for root already; `isImage`: whether `files` are those of another
 * system than the one that runs, of which the usual is assumed.
 */
export function arePortsKept(files: NodeFiles, ports: HubPorts, isImage: boolean): boolean {
  const path = `/proc/sys/${setting.replaceAll('.', '/')}`
  const now = isImage ? undefined : files.read(path)?.content.toString()
  return highestOf(ports) < Number(now ?? usualStart)
}

const highestOf = ({ proxy, secure, ops }: HubPorts): number => Math.max(proxy, secure, ops)
