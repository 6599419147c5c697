import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { isIPv4, SocketAddress } from 'node:net'
import { inodeIn, listening, socketsIn } from './socket-table.ts'

/** Where a socket listens. */
export interface ListenAddress {
  readonly address: string
  readonly port: number
}

/** A TCP socket of this network namespace that listens, from the kernel's table (proc(5)). */
export interface ListeningSocket extends ListenAddress {
  readonly uid: number
  readonly inode: string
}

/** A process that has a socket open. */
export interface SocketHolder {
  readonly pid: number
  /** The file it runs; where that may not be read, the name the process gives itself. */
  readonly program: string
}

/** Every TCP socket that listens; none where there is no /proc. */
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

/** The sockets that keep another one from listening at `place`; the one at the very address first. */
export function socketsAt(place: ListenAddress): readonly ListeningSocket[] {
  const wanted = canonical(place.address)
  return listeningSockets()
    .filter(({ port, address }) => port === place.port && overlap(address, wanted))
    .toSorted((a, b) => Number(b.address === wanted) - Number(a.address === wanted))
}

/**
 * The process with the lowest number that has a socket open; `undefined` where none is seen: it may be another user's while this process
 * is not root's, or outside the container.
 */
export function holderOf(inode: string): SocketHolder | undefined {
  for (const pid of pids()) {
    if (openSockets(pid).includes(inode)) return { pid, program: programOf(pid) }
  }
  return undefined
}

/** An address in its canonical spelling; the zone of a link-local one stays. */
export function canonical(address: string): string {
  const [plain = '', ...zone] = address.split('%')
  const family = isIPv4(plain) ? 'ipv4' : 'ipv6'
  return [new SocketAddress({ address: plain, family }).address, ...zone].join('%')
}

/** `::` takes IPv4 as well, unless its socket says otherwise, which the table does not show. */
function overlap(a: string, b: string): boolean {
  if (a === b || a === '::' || b === '::') return true
  return (a === '0.0.0.0' || b === '0.0.0.0') && isIPv4(a) && isIPv4(b)
}

/** A kernel without a family has no table of it. */
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

/** The inodes of a process's sockets; none where it has ended, or may not be looked at. */
function openSockets(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).flatMap((fd) => inodeIn(linkAt(`${folder}/${fd}`) ?? '') ?? [])
  } catch {
    return []
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

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
