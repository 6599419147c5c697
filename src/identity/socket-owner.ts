import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { turn } from '../base/clock.ts'
import { FreshRead } from '../base/fresh-read.ts'
import { socketsIn } from '../base/socket-table.ts'
import type { Peer } from '../exchange/exchange.ts'

type Family = 'tcp' | 'tcp6'

/** Owners by both ends of a connection as the kernel prints them. */
type Owners = ReadonlyMap<string, number>

/**
 * The uid that owns the client's end of a connection within this host, from the kernel's socket table (proc(5), /proc/net/tcp);
 * `undefined` where the table has no such socket: it has closed, or is another network namespace's. Rejects where the table cannot be
 * read. A uid that was found is remembered for the connection. Requests that ask at the same time share one reading of the table, which
 * costs the kernel time for each of its sockets.
 */
export class SocketOwners {
  readonly #known = new WeakMap<Peer, Promise<number | undefined>>()
  readonly #tables: Readonly<Record<Family, FreshRead<Owners>>>

  constructor(table = (family: Family) => readFile(`/proc/net/${family}`, 'utf8')) {
    const owners = (family: Family) =>
      new FreshRead(() => table(family).then(ownersIn, noneIfAbsent))
    this.#tables = { tcp: owners('tcp'), tcp6: owners('tcp6') }
  }

  uid(peer: Peer): Promise<number | undefined> {
    const known = this.#known.get(peer)
    if (known) return known
    const looking = this.#look(peer)
    this.#known.set(peer, looking)
    const forget = (): void => void this.#known.delete(peer)
    looking.then((uid) => uid ?? forget(), forget)
    return looking
  }

  async #look(peer: Peer): Promise<number | undefined> {
    const [address, localAddress] = [unmapped(peer.address), unmapped(peer.localAddress)]
    for (const family of isIPv4(address) ? (['tcp', 'tcp6'] as const) : (['tcp6'] as const)) {
      const owners = await this.#tables[family].get()
      // Whoever asks can have heard by then that the connection was gone before the table was read.
      await turn()
      const client = endpoint(address, peer.port, family)
      const server = endpoint(localAddress, peer.localPort, family)
      const uid = owners.get(`${client} ${server}`)
      if (uid !== undefined) return uid
    }
    return undefined
  }
}

function ownersIn(table: string): Owners {
  const owners = new Map<string, number>()
  for (const { local, remote, uid, inode } of socketsIn(table)) {
    // What its owner has closed stands there with uid 0.
    if (inode !== '0') owners.set(`${local} ${remote}`, uid)
  }
  return owners
}

/** A kernel without a family has no table of it. */
function noneIfAbsent(cause: unknown): Owners {
  if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
  throw cause
}

/** An IPv4 address as such, also where a listener for both families wrote it as IPv6. */
const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** An address and port as the kernel prints them: 32-bit words in the host's byte order, upper-case hexadecimal. */
function endpoint(address: string, port: number, family: 'tcp' | 'tcp6'): string {
  const bytes = family === 'tcp' ? ipv4Bytes(address) : ipv6Bytes(address)
  const words: string[] = []
  for (let i = 0; i < bytes.length; i += 4) {
    words.push(
      Buffer.from(bytes.subarray(i, i + 4))
        .reverse()
        .toString('hex'),
    )
  }
  return `${words.join('')}:${port.toString(16).padStart(4, '0')}`.toUpperCase()
}

const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split('.').map(Number))

function ipv6Bytes(address: string): Buffer {
  const [plain = ''] = address.split('%')
  if (isIPv4(plain))
    return Buffer.concat([Buffer.from('00000000000000000000ffff', 'hex'), ipv4Bytes(plain)])
  const mapped = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(plain)
  const tail = mapped?.[2] === undefined ? '' : ipv4Bytes(mapped[2]).toString('hex')
  const text = mapped ? `${mapped[1]}${tail.slice(0, 4)}:${tail.slice(4)}` : plain
  const [head = '', rest] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = rest === undefined || rest === '' ? [] : rest.split(':')
  const zeros = rest === undefined ? 0 : 8 - left.length - right.length
  const groups = [...left, ...Array<string>(zeros).fill('0'), ...right]
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
