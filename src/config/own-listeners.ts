import { isIP, isIPv4 } from 'node:net'
import { canonical } from '../base/listening-sockets.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import type { Values } from './options.ts'
import { addressesOf } from './passed-sockets.ts'

/** How this host is reached. */
export interface OwnHost {
  readonly names: readonly string[]
  readonly addresses: readonly string[]
}

/**
 * Mistakes for configured API servers that are the hub itself: it would forward each request to
 * itself for ever. No name is looked up.
 */
export function ownServers(values: Values, own: OwnHost): string[] {
  return values['server-addr'].flatMap((server) => {
    const by = ownListener(server, values, own)
    return by === undefined
      ? []
      : [
          `--server-addr: ${server.origin} is the hub itself (${by}): name the API servers of the cluster`,
        ]
  })
}

/** The flag by which the hub listens at that address; `undefined`: it does not. */
function ownListener(server: URL, values: Values, own: OwnHost): string | undefined {
  const host = hostOf(server)
  const port = portOf(server)
  const { 'hub-address': hub } = values
  const dummy = dummyInterfaceOf(values)?.address
  const proxies = ['proxy-port', 'proxy-secure-port'] as const
  const secure = values['proxy-secure-port']
  if (hub && normalized(hub.host) === host && (hub.port ?? secure) === port) return '--hub-address'
  if (dummy === host && proxies.some((name) => values[name] === port)) return '--dummy-if-ip'
  const found = listenerFlags(values).find(
    ([name, address]) => values[name] === port && isReached(address, host, own),
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

/** Whether a connection to `host` reaches, or may reach, a listener at `address`. */
function isReached(address: string, host: string, { names, addresses }: OwnHost): boolean {
  const all = addressesOf(address)
  const everywhere = all.includes('0.0.0.0') || all.includes('::')
  if (host === 'localhost') return everywhere || all.includes('127.0.0.1') || all.includes('::1')
  // The name of this host may stand for any of its addresses, often for one of loopback.
  if (isIP(host) === 0) return isNamed(host, names)
  const isHere =
    (isIPv4(host) && host.startsWith('127.')) || addresses.map(normalized).includes(host)
  return all.includes(host) || (everywhere && isHere)
}

/**
 * Without brackets, as `canonical` writes an address, an IPv4 one as such. `localhost` for every
 * name of it, and for the unspecified addresses, with which the kernel connects to loopback.
 */
export const hostOf = ({ hostname }: URL): string => normalized(hostname.replace(/^\[|\]$/g, ''))

/** Whether `host`, as `hostOf` writes it, is one of the names. */
export const isNamed = (host: string, names: readonly string[]): boolean =>
  names.map(normalized).includes(host)

function normalized(host: string): string {
  if (isIP(host) === 0) {
    const name = host.toLowerCase().replace(/\.$/, '')
    return localhost.test(name) ? 'localhost' : name
  }
  const address = canonical(host).replace(/^::ffff:(?=\d+\.)/, '')
  return address === '0.0.0.0' || address === '::' ? 'localhost' : address
}

/** RFC 6761 section 6.3, and what resolvers take for it besides (nss-myhostname(8)). */
const localhost = /^(.+\.)?localhost(\.localdomain)?$/

export const portOf = ({ port, protocol }: URL): number =>
  Number(port || (protocol === 'https:' ? 443 : 80))
