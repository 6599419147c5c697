import { isHubAt } from '../../config/own-listeners.ts'
import type { NodeFiles } from './node-files.ts'
import type { HubPorts } from './static-pod.ts'

/** A yurthub that is set up on a node. */
export interface Yurthub {
  /** The file that starts it. */
  readonly path: string
  /** How to end it. */
  readonly advice: string
  /** Where its flags are: the path, or the command that prints them, of drop-ins as well. */
  readonly flagsIn: string
}

/** The file that yurtadm writes (OpenYurt 1.6 on; before, a static pod). */
const unit = '/etc/systemd/system/yurthub.service'

/**
 * The ports that yurthub's proxies have, by default and in OpenYurt's charts, and the addresses at
 * which pods reach them.
 */
const usualPorts = [10261, 10268]
const dummyAddresses = ['169.254.2.1', 'fd00::2:1']

/** The yurthub that starts with this node, if there is one: as a static pod, or as a unit. */
export function yurthubOf(files: NodeFiles, manifestFolder: string): Yurthub | undefined {
  const manifest = files
    .names(manifestFolder)
    .find((name) => /^yurt-?hub.*\.(ya?ml|json)$/.test(name))
  if (manifest !== undefined) {
    const path = `${manifestFolder}/${manifest}`
    return { path, advice: `move ${path} out of ${manifestFolder}`, flagsIn: path }
  }
  if (files.read(unit) === undefined) return undefined
  return {
    path: unit,
    advice: 'systemctl disable --now yurthub',
    flagsIn: 'systemctl cat yurthub',
  }
}

/**
 * Whether that is where a hub of this node listens, nodehub with these ports or a yurthub: no API
 * server of the cluster. `names`: those of the node and its host.
 */
export function isHubOfNode(server: URL, ports: HubPorts, names: readonly string[]): boolean {
  const all = [...usualPorts, ports.proxy, ports.secure, ports.ops]
  return isHubAt(server, all, { names, addresses: dummyAddresses })
}
