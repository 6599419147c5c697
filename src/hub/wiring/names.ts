import type { StartConfig } from '../../config/hub-config.ts'

/** The names and addresses besides loopback's under which the node's programs may call the hub. */
export function ownHosts({ proxy, ops, pods, nodeName }: StartConfig): ReadonlySet<string> {
  const names = [proxy.address, ops.address, pods.dummy?.address, pods.hubAddress?.host, nodeName]
  return new Set(names.flatMap((name) => (name === undefined ? [] : [name.toLowerCase()])))
}

/** The names and addresses in the hub's serving certificate. */
export function servingNames(config: StartConfig): string[] {
  const unspecified = new Set(['0.0.0.0', '::'])
  const names = ['127.0.0.1', '::1', 'localhost', ...ownHosts(config)]
  return [...new Set(names)].filter((name) => !unspecified.has(name))
}
