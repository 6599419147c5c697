import { isIP } from 'node:net'
import { canonical } from '../base/listening-sockets.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import type { Values } from './options.ts'
import { addressesOf } from './passed-sockets.ts'

/**
 * Mistakes for configured API servers that are the hub itself: it would forward each request to
 * itself for ever.
 */
export function ownServers(values: Values, addresses: readonly string[]): string[] {
  return values['server-addr'].flatMap((server) => {
    const by = ownListener(server, values, addresses)
    return by === undefined
      ? []
      : [
          `--server-addr: ${server.origin} is the hub itself (${by}): name the API servers of the cluster`,
        ]
  })
}

/**
 * The flag by which the hub listens at that address; `undefined`: it does not. `addresses` are
 * those of this host.
 */
function ownListener(
  server: URL,
  values: Values,
  addresses: readonly string[],
): string | undefined {
  const host = hostOf(server)
  const port = portOf(server)
  const { 'hub-address': hub } = values
  const dummy = dummyInterfaceOf(values)?.address
  const proxies = ['proxy-port', 'proxy-secure-port'] as const
  const secure = values['proxy-secure-port']
  if (hub?.host.toLowerCase() === host && (hub.port ?? secure) === port) return '--hub-address'
  if (dummy === host && proxies.some((name) => values[name] === port)) return '--dummy-if-ip'
  const found = listenerFlags(values).find(
    ([name, address]) => values[name] === port && isReached(address, host, addresses),
  )
  return found && `--${found[0]}`
}

/** The flag of each listener's port, and its address. */
export const listenerFlags = (values: Values) =>
  [
    ['serve-port', values['bind-address']],
    ['proxy-port', values['bind-proxy-address']],
    ['proxy-secure-port', values['bind-proxy-address']],
  ] as const

/** Whether a connection to `host` reaches a listener at `address`. */
function isReached(address: string, host: string, addresses: readonly string[]): boolean {
  const all = addressesOf(address)
  const everywhere = all.includes('0.0.0.0') || all.includes('::')
  if (host === 'localhost') return everywhere || all.includes('127.0.0.1') || all.includes('::1')
  if (isIP(host) === 0) return false
  return all.includes(canonical(host)) || (everywhere && addresses.map(canonical).includes(host))
}

/** Without brackets, as `canonical` writes an address. */
export function hostOf({ hostname }: URL): string {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return isIP(host) === 0 ? host : canonical(host)
}

export const portOf = ({ port, protocol }: URL): number =>
  Number(port || (protocol === 'https:' ? 443 : 80))
