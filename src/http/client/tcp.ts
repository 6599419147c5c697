import dns, { type LookupAddress } from 'node:dns'
import { connect, isIP, type Socket } from 'node:net'
import { after, within } from '../../base/clock.ts'
import { ConnectTimeout } from './wire-error.ts'

/** TCP keep-alive, below the time after which NATs drop an idle connection (a minute and more). */
export const keepAliveProbeMs = 30_000

/** The next address is tried so long after the one before (RFC 8305, section 5). */
const staggerMs = 250

/** A lookup whose last answer is known may take so long, at most; then that one is used. */
const staleMs = 500

/** The last answers, by host: the configuration names a few. */
const known = new Map<string, readonly LookupAddress[]>()

/** One at a time for each host: each occupies a thread, which a silent resolver holds for long. */
const lookups = new Map<string, Promise<readonly LookupAddress[]>>()

function lookUp(host: string): Promise<readonly LookupAddress[]> {
  const running = lookups.get(host)
  if (running) return running
  const begun = new Promise<readonly LookupAddress[]>((resolve, reject) => {
    dns.lookup(host, { all: true }, (error, found) => {
      lookups.delete(host)
      if (error) return reject(error)
      known.set(host, found)
      resolve(found)
    })
  })
  lookups.set(host, begun)
  return begun
}

/**
 * The addresses of a host; the last known ones where its lookup fails or takes long: the link to an
 * API server may be well while its resolver is not.
 */
function addressesOf({ host, limitMs }: TcpOptions): Promise<readonly LookupAddress[]> {
  const family = isIP(host)
  if (family !== 0) return Promise.resolve([{ address: host, family }])
  const last = known.get(host)
  const found = lookUp(host)
  if (!last) return found
  return within(
    Math.min(staleMs, limitMs / 2),
    found.catch(() => last),
  ).then((addresses) => addresses ?? last)
}

interface TcpOptions {
  readonly host: string
  readonly port: number
  readonly limitMs: number
  readonly allowHalfOpen?: boolean
}

/**
 * Opens a TCP connection, within `limitMs` for the lookup and again for the rest. All addresses are
 * tried, each a moment after the one before, and none is given up before: on a link with a long
 * delay, or after a lost packet, the first may be the one that answers.
 */
export async function tcpConnection(options: TcpOptions): Promise<Socket> {
  const { host, port, limitMs } = options
  const inTime = async <T>(
    what: 'connection to' | 'address of',
    coming: Promise<T>,
  ): Promise<T> => {
    const come = await within(limitMs, coming)
    if (come === undefined) throw new ConnectTimeout(`${host}:${port}`, what, limitMs)
    return come
  }
  const attempts = new Attempts(await inTime('address of', addressesOf(options)), options)
  try {
    return await inTime('connection to', attempts.first)
  } finally {
    attempts.end()
  }
}

/** The attempts to connect to the addresses of a host. */
class Attempts {
  readonly #waiting: LookupAddress[]
  readonly #options: TcpOptions
  readonly #open = new Set<Socket>()
  readonly #first = Promise.withResolvers<Socket>()
  #next: Disposable | undefined

  constructor(addresses: readonly LookupAddress[], options: TcpOptions) {
    this.#waiting = [...addresses]
    this.#options = options
    this.#begin(new Error(`${options.host} has no address`))
  }

  /** The first that stands; rejects with the last failure where none does. */
  get first(): Promise<Socket> {
    return this.#first.promise
  }

  #begin(failure: Error): void {
    this.#next?.[Symbol.dispose]()
    const to = this.#waiting.shift()
    if (!to) {
      if (this.#open.size === 0) this.#first.reject(failure)
      return
    }
    const { port, allowHalfOpen = false } = this.#options
    const socket = connect({
      host: to.address,
      port,
      allowHalfOpen,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveProbeMs,
    })
    this.#open.add(socket)
    socket.once('connect', () => {
      this.#open.delete(socket)
      socket.removeAllListeners('error')
      this.#first.resolve(socket)
      this.end()
    })
    socket.once('error', (error) => {
      this.#open.delete(socket)
      this.#begin(error)
    })
    if (this.#waiting.length > 0) this.#next = after(staggerMs, () => this.#begin(failure))
  }

  /** Gives up those that do not stand. */
  end(): void {
    this.#waiting.length = 0
    this.#next?.[Symbol.dispose]()
    for (const socket of this.#open) socket.removeAllListeners().destroy()
    this.#open.clear()
  }
}
