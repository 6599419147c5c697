import { isIPv4 } from 'node:net'

/** The host and origin that a request names, and the address where it came in. */
export interface RequestHost {
  readonly localAddress: string
  readonly host: string | undefined
  readonly origin: string | undefined
}

/**
 * Why a request is not served on loopback: a web page sent it (any Origin), or it was led here by a
 * name that is not this host's (DNS rebinding). A browser of root's would otherwise act for its
 * pages. Elsewhere names are the operator's to give. The name is not repeated: a refusal would
 * otherwise be as long as its sender likes.
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

/** Without port and brackets, in lower case. */
const nameIn = (field: string): string =>
  field
    .trim()
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')

/** Whether only this host itself can be at that end. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}
