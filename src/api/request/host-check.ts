import { isIPv4 } from 'node:net'

/** The Host and Origin of a request, and the address that received it. */
export interface RequestHost {
  readonly localAddress: string
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Why a request on loopback is refused: a web page sent it (it has an Origin), or its Host is not a
 * name of this host (DNS rebinding). Otherwise a web page in a browser of root could act as the
 * node. Other addresses may have any name. The message does not quote the name, whose length the
 * sender chooses.
 */
export function rebindingFault(
  ownHosts: ReadonlySet<string>,
  { localAddress, host = 'localhost', origin }: RequestHost,
): string | undefined {
  if (!isLoopback(localAddress)) return undefined
  if (origin !== undefined) return 'requests of web pages are not served'
  const name = nameIn(host)
  return name === 'localhost' || isLoopback(name) || ownHosts.has(name)
    ? undefined
    : 'the Host of the request is not a name of this host'
}

/** The host without port and brackets, in lower case. */
const nameIn = (field: string): string =>
  field
    .trim()
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')

/** Whether both ends of a connection are on loopback, so that its client is on this host. */
export const isWithinHost = ({
  localAddress,
  address,
}: {
  readonly localAddress: string
  readonly address: string
}): boolean => isLoopback(localAddress) && isLoopback(address)

/** Whether only this host can use the address. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}
