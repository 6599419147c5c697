import { isIP, isIPv4 } from 'node:net'
import { canonical } from '../base/listening-sockets.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import type { Values } from './options.ts'

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
  const { 'hub-address': hub, 'proxy-secure-port': secure } = values
  const ports = [values['serve-port'], values['proxy-port'], secure]
  const addresses = [...own.addresses, dummyInterfaceOf(values)?.address ?? []].flat()
  const isOwn = (server: URL): boolean =>
    isHubAt(server, ports, { ...own, addresses }) ||
    (hub !== undefined &&
      isHubAt(server, [hub.port ?? secure], { names: [hub.host], addresses: [] }))
  return values['server-addr']
    .filter(isOwn)
    .map(
      ({ origin }) =>
        `--server-addr: ${origin} is the hub itself: name the API servers of the cluster`,
    )
}

/** Whether that is a hub of a host which is reached so, with these ports; loopback is. */
export function isHubAt(server: URL, ports: readonly number[], own: OwnHost): boolean {
  const host = normalized(server.hostname.replace(/^\[|\]$/g, ''))
  const known = [...own.names, ...own.addresses].map(normalized)
  const isLoopback = host === '::1' || (isIPv4(host) && host.startsWith('127.'))
  const isHere = host === 'localhost' || isLoopback || known.includes(host)
  return isHere && ports.includes(portOf(server))
}

/**
 * As `canonical` writes an address, an IPv4 one as such. `localhost` for every name of it, and for
 * the unspecified addresses, with which the kernel connects to loopback.
 */
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

const portOf = ({ port, protocol }: URL): number =>
  Number(port || (protocol === 'https:' ? 443 : 80))
