import { canonical, type ListenAddress } from '../base/listening-sockets.ts'
import { dummyInterfaceOf } from './dummy-interface.ts'
import type { Values } from './options.ts'

/** A socket that the parent process opened for this one (sd_listen_fds(3)). */
export interface PassedSocket {
  readonly fd: number
  /** systemd's FileDescriptorName; empty if there is none. */
  readonly name: string
  /** Its address; `undefined`: it is no listening TCP socket. */
  readonly at: ListenAddress | undefined
}

/** The names of listeners and of their passed sockets. */
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

interface Assigned {
  readonly sockets: SocketsByListener
  readonly mistakes: readonly string[]
  /** Notes on passed sockets at another address than the configured one. */
  readonly notes: readonly string[]
}

/**
 * Assigns each passed socket to the listener of its name, else to the one with its address. A
 * socket without a listener is a mistake: its clients would wait for ever. So is a second port for
 * a listener, which has one.
 */
export function assignSockets(passed: readonly PassedSocket[], values: Values): Assigned {
  const sockets: Partial<Record<ListenerName, ListenerSocket[]>> = {}
  const mistakes: string[] = []
  const notes: string[] = []
  const known = listeners(values)
  for (const socket of passed) {
    const { fd, name, at } = socket
    if (at === undefined) {
      mistakes.push(`${shown(socket)} is no TCP socket that listens`)
      continue
    }
    const listener =
      known.find((each) => each.name === name) ?? known.find((each) => isAddressOf(each, at))
    if (listener === undefined) {
      const names = known.map((each) => each.name).join(' or ')
      mistakes.push(
        `${shown(socket)} belongs to no listener: name it ${names}, or bind it where one listens`,
      )
      continue
    }
    const others = (sockets[listener.name] ??= [])
    if (others.some((other) => other.at.port !== at.port)) {
      mistakes.push(`${shown(socket)} is at a second port for ${listener.name}`)
      continue
    }
    others.push({ fd, at })
    if (listener.port !== 0 && !isAddressOf(listener, at)) {
      notes.push(
        `${shown(socket)} is served, and nothing at ${listener.address} port ${listener.port}`,
      )
    }
  }
  return { sockets, mistakes, notes }
}

/** Whether `at` is an address of a listener that is configured for `configured`. */
export const isAddressOf = (
  { address, port, besides }: Omit<ConfiguredListener, 'name'>,
  at: ListenAddress,
): boolean =>
  at.port === port &&
  (canonical(at.address) === besides || addressesOf(address).includes(canonical(at.address)))

function shown({ fd, name, at }: PassedSocket): string {
  const called = name === '' ? '' : `${JSON.stringify(name)} `
  const bound = at === undefined ? '' : `, bound to ${at.address} port ${at.port}`
  return `the passed socket ${called}(file descriptor ${fd}${bound})`
}
