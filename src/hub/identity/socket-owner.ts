import { isIPv4 } from 'node:net'
import { ipv4Bytes, ipv6Bytes } from '../../base/ip-bytes.ts'
import { FreshRead } from '../../base/fresh-read.ts'
import { established, establishedAt, socketsIn, type SocketLine } from '../../base/socket-table.ts'
import type { Peer } from '../../http/exchange/exchange.ts'

type Family = 'tcp' | 'tcp6'

/** Sockets by local and remote address, as the kernel prints them. */
type Sockets = ReadonlyMap<string, SocketLine>

/**
 * The uid that owns the client's end of a connection within this host, from the kernel's socket
 * table (proc(5), /proc/net/tcp). `undefined` where the table has no such socket: it has closed, or
 * belongs to another network namespace. The result is root only if the connection was still
 * established afterwards. Rejects where the table cannot be read. The hub caches the uid for the
 * connection, all of whose bytes come from that one socket. Concurrent requests share one read of
 * the table, which costs the kernel time for each of its sockets.
 *
 * The addresses of a connection identify its client only while it lasts. A client may reset it
 * while Node reads nothing from it, so that Node does not notice, and a program of root may reuse
 * the port. For this reason a line of root in one table counts only if a second table, read after
 * the first one was complete, shows the same line again, and shows the hub's own end of this very
 * connection, by its inode, as established:
 *
 * - The connection was established before the first read began, as a request had come through it.
 *   No socket becomes established twice. So it was established during the whole first read, whose
 *   lines are not all of one moment.
 * - During that time the kernel delivers every segment between these addresses to it. It answers no
 *   SYN with a SYN-ACK. So another socket with the client's addresses stays in SYN_SENT, also where
 *   the kernel allows one (the first of them is bound to a device), or where a reset was lost and
 *   the client is gone without the hub's end. An established one is older, or is the client.
 * - Of two established sockets the kernel lists the newer first. An older one of root would have to
 *   be bound to a device.
 *
 * A half-closed socket is not established, and one that its process has closed has no inode.
 * Programs that may forge segments (CAP_NET_RAW, CAP_NET_ADMIN) are equivalent to root here. A
 * socket belongs to the process that created it, whichever process it is passed to. SO_PEERCRED
 * works for Unix sockets only, and Node offers no access to SOCK_DIAG.
 */
export class SocketOwners {
  readonly #uids = new WeakMap<Peer, number | Promise<number | undefined>>()
  readonly #tables: Readonly<Record<Family, SocketTable>>

  /**
   * `lines` reads from the table of a family the lines that `establishedWith` finds, and perhaps
   * others. By default it reads the kernel's table.
   */
  constructor(
    lines = (family: Family, ends: readonly string[]) => establishedAt(`/proc/net/${family}`, ends),
  ) {
    const table = (family: Family): SocketTable => new SocketTable((ends) => lines(family, ends))
    this.#tables = { tcp: table('tcp'), tcp6: table('tcp6') }
  }

  /** A promise until it is known. */
  uid(peer: Peer): number | Promise<number | undefined> {
    const known = this.#uids.get(peer)
    if (known !== undefined) return known
    const pending = this.#confirmedUid(peer)
    this.#uids.set(peer, pending)
    const keep = (uid?: number): void => {
      if (uid === undefined) this.#uids.delete(peer)
      else this.#uids.set(peer, uid)
    }
    pending.then(keep, () => keep())
    return pending
  }

  async #confirmedUid(peer: Peer): Promise<number | undefined> {
    const client = await this.#client(peer)
    // A caller that is not root is refused in any case.
    if (client?.uid !== 0) return client?.uid
    return (await this.#isStill(client, peer)) ? client.uid : undefined
  }

  /**
   * An IPv4 client may have an IPv6 socket. The hub reads that table only while its own end is
   * established: a client that has closed its end costs one read.
   */
  async #client(peer: Peer): Promise<SocketLine | undefined> {
    if (!isIPv4(unmapped(peer.address))) return this.#find(peer, 'tcp6').then(([found]) => found)
    const [found, own] = await this.#find(peer, 'tcp')
    const isOver = familyOf(peer) === 'tcp' && own?.inode !== peer.inode
    return found || isOver ? found : (await this.#find(peer, 'tcp6'))[0]
  }

  /**
   * Whether both ends of the connection are established, and the client's is the same socket.
   */
  async #isStill({ uid, inode }: SocketLine, peer: Peer): Promise<boolean> {
    const [again, own] = await this.#find(peer, familyOf(peer))
    if (own === undefined || own.inode !== peer.inode) return false
    const other = familyOf(peer) === 'tcp' ? 'tcp6' : 'tcp'
    const client = again ?? (await this.#find(peer, other))[0]
    return client?.uid === uid && client.inode === inode
  }

  /**
   * Both ends of a connection, the client's first, as one read of the table of a family shows them.
   */
  #find(
    { address, port, localAddress, localPort }: Peer,
    family: Family,
  ): Promise<readonly (SocketLine | undefined)[]> {
    const client = endpoint(address, port, family)
    const hub = endpoint(localAddress, localPort, family)
    return this.#tables[family].sockets([`${client} ${hub}`, `${hub} ${client}`])
  }
}

/** The kernel's table of one family. A lookup during a read shares the read after it. */
class SocketTable {
  /** The addresses that the next read looks for. */
  readonly #nextEnds = new Set<string>()
  readonly #reading: FreshRead<Sockets>

  constructor(lines: (ends: readonly string[]) => Promise<string>) {
    this.#reading = new FreshRead(() => {
      const ends = [...this.#nextEnds]
      this.#nextEnds.clear()
      return lines(ends).then(establishedIn, noneIfAbsent)
    })
  }

  /** For each pair of addresses the established socket that a process holds. */
  async sockets(ends: readonly string[]): Promise<readonly (SocketLine | undefined)[]> {
    for (const each of ends) this.#nextEnds.add(each)
    const found = await this.#reading.get()
    return ends.map((each) => found.get(each))
  }
}

function establishedIn(table: string): Sockets {
  const sockets = new Map<string, SocketLine>()
  for (const socket of socketsIn(table)) {
    const ends = `${socket.local} ${socket.remote}`
    // A socket that its owner has closed, or not accepted yet, is listed with uid 0 and without an
    // inode.
    const counts = socket.state === established && socket.inode !== '0' && !sockets.has(ends)
    if (counts) sockets.set(ends, socket)
  }
  return sockets
}

/** The table that lists the hub's own end of a connection. */
const familyOf = ({ localAddress }: Peer): Family => (isIPv4(localAddress) ? 'tcp' : 'tcp6')

/** A kernel without this family has no table for it. */
function noneIfAbsent(cause: unknown): Sockets {
  if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
  throw cause
}

/** An IPv4 address, also where a dual-stack listener reports it as IPv6. */
const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/**
 * An address and port as the kernel prints them: 32-bit words in host byte order, upper-case
 * hexadecimal.
 */
function endpoint(address: string, port: number, family: Family): string {
  const plain = unmapped(address)
  const bytes =
    family === 'tcp' ? ipv4Bytes(plain) : ipv6Bytes(isIPv4(plain) ? `::ffff:${plain}` : plain)
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
