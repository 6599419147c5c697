import { readdirSync, readFileSync, statSync } from 'node:fs'
import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import { inodeIn, linkAt, listening, socketsIn } from './socket-table.ts'

/** Where a socket listens. */
export interface ListenAddress {
  readonly address: string
  readonly port: number
}

/** A listening TCP socket of this network namespace, from the kernel's table (proc(5)). */
export interface ListeningSocket extends ListenAddress {
  readonly uid: number
  readonly inode: string
}

/** A process that has a socket open. */
interface SocketHolder {
  readonly pid: number
  /** Its executable; if that is not readable, the name that the process gives itself. */
  readonly program: string
}

/** Every listening TCP socket; none without /proc. */
export function listeningSockets(): readonly ListeningSocket[] {
  return [table('tcp'), table('tcp6')].flatMap((text) =>
    [...socketsIn(text)]
      .filter(({ state }) => state === listening)
      .map(({ local, uid, inode }) => {
        const [address = '', port = ''] = local.split(':')
        return { address: addressOf(address), port: parseInt(port, 16), uid, inode }
      }),
  )
}

/** The sockets that prevent another one from listening at `place`; an exact match first. */
export function socketsAt(
  place: ListenAddress,
  among = listeningSockets(),
): readonly ListeningSocket[] {
  const wanted = canonical(place.address)
  return among
    .filter(({ port, address }) => port === place.port && overlap(address, wanted))
    .toSorted((a, b) => Number(b.address === wanted) - Number(a.address === wanted))
}

/**
 * The process with the lowest pid that has a socket open, preferably of the socket's user;
 * `undefined` if none is visible: it may be another user's and this process not root's, or outside
 * the container.
 */
function holderOf({ uid, inode }: ListeningSocket): SocketHolder | undefined {
  // The user's processes first: a scan of all processes of a busy node is slow.
  const { theirs = [], others = [] } = Object.groupBy(pids(), (pid) =>
    ownerOf(pid) === uid ? 'theirs' : 'others',
  )
  const pid = [...theirs, ...others].find((each) => holds(each, inode))
  return pid === undefined ? undefined : { pid, program: programOf(pid) }
}

/**
 * Describes the process that listens, for an operator. Names come from the program itself, and are
 * quoted.
 */
export function describeListener(socket: ListeningSocket): string {
  const holder = holderOf(socket)
  const who = holder
    ? `${JSON.stringify(holder.program)} (process ${holder.pid}, uid ${socket.uid})`
    : `a process of uid ${socket.uid} that is not seen from here (inode ${socket.inode})`
  return `${who} listens at ${joinHostPort(socket)}`
}

/** As in a URL. */
export const joinHostPort = ({ address, port }: ListenAddress): string =>
  `${isIPv6(address) ? `[${address}]` : address}:${port}`

/** An address in its canonical form, with the zone of a link-local one. */
export function canonical(address: string): string {
  const [plain = '', ...zone] = address.split('%')
  const family = isIPv4(plain) ? 'ipv4' : 'ipv6'
  return [new SocketAddress({ address: plain, family }).address, ...zone].join('%')
}

/**
 * Whether sockets at both addresses are in each other's way. `::` accepts IPv4 as well, unless its
 * socket is IPv6-only, which the table does not show.
 */
export function overlap(a: string, b: string): boolean {
  if (a === b || a === '::' || b === '::') return true
  return (a === '0.0.0.0' || b === '0.0.0.0') && isIPv4(a) && isIPv4(b)
}

/** A kernel without the family has no such table. */
function table(family: 'tcp' | 'tcp6'): string {
  try {
    return readFileSync(`/proc/self/net/${family}`, 'latin1')
  } catch {
    return ''
  }
}

/** An address as the kernel prints it: 32-bit words in the host's byte order, in hexadecimal. */
function addressOf(printed: string): string {
  const words = printed.match(/.{8}/g) ?? []
  const bytes = Buffer.concat(words.map((word) => Buffer.from(word, 'hex').reverse()))
  if (bytes.length === 4) return bytes.join('.')
  return canonical((bytes.toString('hex').match(/.{4}/g) ?? []).join(':'))
}

function pids(): readonly number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .toSorted((a, b) => a - b)
  } catch {
    return []
  }
}

const ownerOf = (pid: number): number | undefined =>
  statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid

/** Whether a process has the socket open; `false` if it has ended or may not be inspected. */
function holds(pid: number, inode: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some((fd) => inodeIn(linkAt(`${folder}/${fd}`) ?? '') === inode)
  } catch {
    return false
  }
}

function programOf(pid: number): string {
  const file = linkAt(`/proc/${pid}/exe`)
  if (file !== undefined) return file
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}
