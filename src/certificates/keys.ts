import type { KeyObject, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import type { JsonGeneralNames, JsonName } from '@peculiar/x509'

/** Every key of the hub's own: ECDSA on P-256. */
export const curve = { namedCurve: 'P-256' } as const

const algorithm = { name: 'ECDSA', ...curve } as const

export const signature = { name: 'ECDSA', hash: 'SHA-256' } as const

export const privateCryptoKey = (key: KeyObject): webcrypto.CryptoKey =>
  key.toCryptoKey(algorithm, true, ['sign'])

export const publicCryptoKey = (key: KeyObject): webcrypto.CryptoKey =>
  key.toCryptoKey(algorithm, true, ['verify'])

/** PKCS#8. */
export const pemOfKey = (key: KeyObject): string =>
  key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** Organizations first: some parsers take the last common name for the whole. */
export const nameOf = (commonName: string, organizations: readonly string[] = []): JsonName => [
  ...organizations.map((name) => ({ O: [name] })),
  { CN: [commonName] },
]

/** Subject alternative names. */
export const generalNames = ({
  dnsNames = [],
  ipAddresses = [],
}: {
  readonly dnsNames?: readonly string[]
  readonly ipAddresses?: readonly string[]
}): JsonGeneralNames => [
  ...dnsNames.map((value) => ({ type: 'dns', value }) as const),
  ...ipAddresses.map((value) => ({ type: 'ip', value: plainAddress(value) }) as const),
]

/** Without a dotted part, which the package misreads, and without a zone. */
function plainAddress(address: string): string {
  const version = isIP(address)
  if (version === 0) throw new Error(`${address} is no IP address`)
  return version === 4
    ? address
    : new URL(`http://[${address.replace(/%.*/, '')}]`).hostname.slice(1, -1)
}
