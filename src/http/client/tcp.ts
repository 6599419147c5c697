import dns, { type LookupAddress } from 'node:dns'
import { connect, isIP, type Socket } from 'node:net'
import { after, within } from '../../base/clock.ts'
import { ConnectTimeout } from './wire-error.ts'

/** TCP keep-alive, below the time after which NATs drop an idle connection (a minute and more). */
export const keepAliveProbeMs = 30_000

/**
 * An address but the last is given up after so long: longer than the delay of any usual link, as
 * after Node's own 250 ms none of a slow one would be reached.
 */
const addressMs = 1_000

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
 * Opens a TCP connection, within `limitMs` for the lookup and again for the rest. The addresses are
 * tried in turn.
 */
export async function tcpConnection(options: TcpOptions): Promise<Socket> {
  const { host, port, limitMs, allowHalfOpen = false } = options
  const addresses = await within(limitMs, addressesOf(options))
  if (!addresses) throw new ConnectTimeout(`${host}:${port}`, 'address of', limitMs)
  const socket = connect({
    host,
    port,
    lookup: (_host, _options, found) => found(null, [...addresses]),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.min(addressMs, limitMs / 2),
    allowHalfOpen,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  })
  return connected(socket, 'connect', `${host}:${port}`, limitMs)
}

/** Resolves once `event` says that a socket is connected; else destroys it after `limitMs`. */
export function connected<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  origin: string,
  limitMs: number,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const patience = after(limitMs, () =>
      socket.destroy(new ConnectTimeout(origin, 'connection to', limitMs)),
    )
    const over = (): void => patience[Symbol.dispose]()
    socket.once('error', (error) => {
      over()
      // Of several addresses the failure of the last.
      reject(error instanceof AggregateError ? (error.errors.at(-1) as Error) : error)
    })
    socket.once(event, () => {
      over()
      resolve(socket)
    })
  })
}
