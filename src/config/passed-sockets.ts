import { canonical, type ListenAddress } from '../base/listening-sockets.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import type { Values } from './options.ts'

/** A socket that the parent process opened for this one (sd_listen_fds(3)). */
export interface PassedSocket {
  readonly fd: number
  /** Its address; `undefined`: it is no listening TCP socket. */
  readonly at: ListenAddress | undefined
}

/** The names of listeners. */
export const listenerNames = ['proxy', 'proxy-secure', 'ops'] as const

export type ListenerName = (typeof listenerNames)[number]

/** An open socket of a listener. */
export interface ListenerSocket {
  readonly fd: number
  readonly at: ListenAddress
}

/** The passed sockets by listener; the other listeners open their own. */
export type SocketsByListener = Readonly<Partial<Record<ListenerName, readonly ListenerSocket[]>>>

/** A configured listener. */
interface ConfiguredListener extends ListenAddress {
  readonly name: ListenerName
  /** Where it listens besides, once there is such an address. */
  readonly besides?: string | undefined
}

function listeners(values: Values): readonly ConfiguredListener[] {
  const { 'bind-proxy-address': address, 'proxy-port': port, 'proxy-secure-port': secure } = values
  const besides = dummyInterfaceOf(values)?.address
  return [
    { name: 'proxy', address, port, besides },
    { name: 'proxy-secure', address, port: secure, besides },
    { name: 'ops', address: values['bind-address'], port: values['serve-port'] },
  ]
}

/**
 * The addresses of a listener that is configured for `address`, itself first. On loopback those of
 * both families: clients of `localhost` try [::1] and 127.0.0.1, and another program must not
 * answer them at the free one.
 */
export function addressesOf(address: string): readonly string[] {
  const [wanted, ipv4, ipv6] = [canonical(address), '127.0.0.1', '::1']
  if (wanted === ipv4 || wanted === '0.0.0.0') return [wanted, ipv6]
  return wanted === ipv6 ? [ipv6, ipv4] : [wanted]
}

/**
 * Assigns each passed socket to the listener with its address. A socket without a listener is a
 * mistake: its clients would wait for ever.
 */
export function assignSockets(passed: readonly PassedSocket[], values: Values) {
  const sockets: Partial<Record<ListenerName, ListenerSocket[]>> = {}
  const mistakes: string[] = []
  const known = listeners(values)
  for (const { fd, at } of passed) {
    const listener = at && known.find((each) => isAddressOf(each, at))
    if (listener) (sockets[listener.name] ??= []).push({ fd, at })
    else {
      mistakes.push(
        at === undefined
          ? `the passed socket (file descriptor ${fd}) is no TCP socket that listens`
          : `the passed socket (file descriptor ${fd}, bound to ${at.address} port ${at.port}) belongs to no listener: bind it where one listens`,
      )
    }
  }
  return { sockets, mistakes }
}

/** Whether `at` is an address of a listener that is configured for `configured`. */
const isAddressOf = (
  { address, port, besides }: Omit<ConfiguredListener, 'name'>,
  at: ListenAddress,
): boolean =>
  at.port === port &&
  (canonical(at.address) === besides || addressesOf(address).includes(canonical(at.address)))
