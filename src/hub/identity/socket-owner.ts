import { isIPv4 } from 'node:net'
import { FreshRead } from '../../base/fresh-read.ts'
import { established, socketsIn, type SocketLine } from '../../base/socket-table.ts'
import type { Peer } from '../../http/exchange/exchange.ts'
import { TableThread } from './table-thread.ts'

type Family = 'tcp' | 'tcp6'

/** Sockets by both their ends, as the kernel prints them. */
type Sockets = ReadonlyMap<string, SocketLine>

/**
 * The uid that owns the client's end of a connection within this host, from the kernel's socket
 * table (proc(5), /proc/net/tcp); `undefined` where the table has no such socket: it has closed, or
 * is another network namespace's. It is root only if the connection was still established after
 * that. Rejects where the table cannot be read. A uid that was found is remembered for the
 * connection, all of whose bytes come from that one socket. Requests that ask at the same time
 * share one reading of the table, which costs the kernel time for each of its sockets.
 *
 * The ends of a connection name its client only while it lasts. A client may reset it while Node
 * reads nothing of it, so that Node does not hear of that, and a program of root may take the port.
 * For this reason root's line in one table counts only if a second table, begun when the first one
 * was complete, shows the same line again, and the hub's own end of this very connection, by its
 * inode, as established:
 *
 * - It was established before the first table was begun, as a request had come through it. No
 *   socket becomes established a second time. So it was established all the time in which the first
 *   table was read, whose lines are not all of one moment.
 * - During that time the kernel gives every segment between these ends to it. It answers no SYN
 *   with a SYN-ACK. So another socket with the client's ends stays in SYN_SENT, also where the
 *   kernel allows one (the first of them is bound to a device), or where a reset was lost and the
 *   client is gone without the hub's end. An established one is older, or is the client.
 * - Of two established ones the kernel has the newer first, in the table, too. An older one of
 *   root's would have to be bound to a device.
 *
 * What is half-closed is not established, and what its process has closed has no inode. Programs
 * that may forge segments (CAP_NET_RAW, CAP_NET_ADMIN) are as good as root in this. A socket is its
 * maker's, into whatever process it is passed. SO_PEERCRED is only for Unix sockets, and SOCK_DIAG
 * is out of Node's reach.
 */
export class SocketOwners implements AsyncDisposable {
  readonly #known = new WeakMap<Peer, Promise<number | undefined>>()
  readonly #thread = new TableThread()
  readonly #tables: Readonly<Record<Family, Table>>

  /**
   * `lines`: of the table of a family those that `establishedWith` finds, and perhaps others;
   * absent: of the kernel's.
   */
  constructor(
    lines = (family: Family, ends: readonly string[]) =>
      this.#thread.lines(`/proc/net/${family}`, ends),
  ) {
    const table = (family: Family): Table => new Table((ends) => lines(family, ends))
    this.#tables = { tcp: table('tcp'), tcp6: table('tcp6') }
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
    const client = await this.#client(peer)
    // Who is not root is refused in any case.
    if (client?.uid !== 0) return client?.uid
    return (await this.#isStill(client, peer)) ? client.uid : undefined
  }

  /**
   * An IPv4 client may have an IPv6 socket. That table is read only while the hub's own end is
   * established: a client that has closed its end costs one reading.
   */
  async #client(peer: Peer): Promise<SocketLine | undefined> {
    if (!isIPv4(unmapped(peer.address))) return this.#find(peer, 'tcp6').then(([found]) => found)
    const [found, own] = await this.#find(peer, 'tcp')
    const isOver = familyOf(peer) === 'tcp' && own?.inode !== peer.inode
    return found || isOver ? found : (await this.#find(peer, 'tcp6'))[0]
  }

  /**
   * Whether both ends of the connection are established, and the client's is the same socket. Only
   * root's connections come so far, so that no one else can have the table read without a rest.
   */
  async #isStill({ uid, inode }: SocketLine, peer: Peer): Promise<boolean> {
    const [again, own] = await this.#find(peer, familyOf(peer), true)
    if (own === undefined || own.inode !== peer.inode) return false
    const other = familyOf(peer) === 'tcp' ? 'tcp6' : 'tcp'
    const client = again ?? (await this.#find(peer, other, true))[0]
    return client?.uid === uid && client.inode === inode
  }

  /**
   * Both ends of a connection, the client's first, as one reading of the table of a family shows
   * them.
   */
  #find(
    { address, port, localAddress, localPort }: Peer,
    family: Family,
    isUrgent = false,
  ): Promise<readonly (SocketLine | undefined)[]> {
    const client = endpoint(address, port, family)
    const hub = endpoint(localAddress, localPort, family)
    return this.#tables[family].sockets([`${client} ${hub}`, `${hub} ${client}`], isUrgent)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]()
  }
}

/**
 * Beyond this a reading is one of thousands of sockets, which a local user may have opened. Then
 * the table is read for a third of the time at most.
 */
export const longMs = 5

/**
 * The kernel's table of one family. Who looks for a socket while it is being read shares the
 * reading after that.
 */
class Table {
  /** The ends that the next reading looks for. */
  readonly #wanted = new Set<string>()
  readonly #reading: FreshRead<Sockets>

  constructor(lines: (ends: readonly string[]) => Promise<string>) {
    this.#reading = new FreshRead(() => {
      const ends = [...this.#wanted]
      this.#wanted.clear()
      return lines(ends).then(establishedIn, noneIfAbsent)
    }, longMs)
  }

  /** For each of these ends the established socket with them that a process holds. */
  async sockets(
    ends: readonly string[],
    isUrgent: boolean,
  ): Promise<readonly (SocketLine | undefined)[]> {
    for (const each of ends) this.#wanted.add(each)
    const found = await this.#reading.get(isUrgent)
    return ends.map((each) => found.get(each))
  }
}

function establishedIn(table: string): Sockets {
  const sockets = new Map<string, SocketLine>()
  for (const socket of socketsIn(table)) {
    const ends = `${socket.local} ${socket.remote}`
    // What its owner has closed, or has not yet accepted, stands there with uid 0 and without an
    // inode.
    const counts = socket.state === established && socket.inode !== '0' && !sockets.has(ends)
    if (counts) sockets.set(ends, socket)
  }
  return sockets
}

/** In which table the hub's own end of a connection is. */
const familyOf = ({ localAddress }: Peer): Family => (isIPv4(localAddress) ? 'tcp' : 'tcp6')

/** A kernel without a family has no table of it. */
function noneIfAbsent(cause: unknown): Sockets {
  if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
  throw cause
}

/** An IPv4 address as such, also where a listener for both families wrote it as IPv6. */
const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/**
 * An address and port as the kernel prints them: 32-bit words in the host's byte order, upper-case
 * hexadecimal.
 */
function endpoint(address: string, port: number, family: 'tcp' | 'tcp6'): string {
  const plain = unmapped(address)
  const bytes = family === 'tcp' ? ipv4Bytes(plain) : ipv6Bytes(plain)
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
