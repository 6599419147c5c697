import type { StartConfig } from '../../config/hub-config.ts'

/** The names and addresses besides loopback's under which the node's programs may call the hub. */
export const ownHosts = (config: StartConfig): ReadonlySet<string> =>
  lowerCase([...addressesForPods(config), config.ops.address, config.nodeName])

/** The names and addresses in the hub's serving certificate of its own authority. */
export const servingNames = (config: StartConfig): string[] => withLoopback(ownHosts(config))

/**
 * Those in the one that is requested from the cluster, besides the names of the API server. The
 * node's name is not among them: the holder of a bootstrap token chooses it, so that it is not
 * approved.
 */
export const requestedNames = (config: StartConfig): string[] =>
  withLoopback(lowerCase(addressesForPods(config)))

/** The addresses where the proxies listen, and to which pods are led. */
const addressesForPods = ({ proxy, pods }: StartConfig) => [
  proxy.address,
  pods.dummy?.address,
  pods.hubAddress?.host,
]

const lowerCase = (names: readonly (string | undefined)[]): ReadonlySet<string> =>
  new Set(names.flatMap((name) => (name === undefined ? [] : [name.toLowerCase()])))

function withLoopback(hosts: ReadonlySet<string>): string[] {
  const unspecified = new Set(['0.0.0.0', '::'])
  const names = ['127.0.0.1', '::1', 'localhost', ...hosts]
  return [...new Set(names)].filter((name) => !unspecified.has(name))
}
