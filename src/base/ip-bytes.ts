/** The 4 bytes of a valid IPv4 address. */
export const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split('.').map(Number))

/** The 16 bytes of a valid IPv6 address, without its zone. */
export function ipv6Bytes(address: string): Buffer {
  const [plain = ''] = address.split('%')
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  const tail = dotted?.[2] === undefined ? '' : ipv4Bytes(dotted[2]).toString('hex')
  const text = dotted ? `${dotted[1]}${tail.slice(0, 4)}:${tail.slice(4)}` : plain
  const [head = '', rest] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = rest === undefined || rest === '' ? [] : rest.split(':')
  const zeros = rest === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right]
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
