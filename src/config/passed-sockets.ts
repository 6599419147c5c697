import { SocketAddress } from 'node:net'
import { plainProxyOf } from './hub-config.ts'
import type { Values } from './options.ts'

/** A socket that whoever started this process has opened for it (sd_listen_fds(3)). */
export interface PassedSocket {
  readonly fd: number
  /** systemd's FileDescriptorName; empty where none was told. */
  readonly name: string
  /** Where it listens; `undefined`: it is no TCP socket that listens. */
  readonly at: { readonly address: string; readonly port: number } | undefined
}

/** Listeners by the names that sockets for them go by. */
export type ListenerName = 'proxy' | 'proxy-secure' | 'ops'

/** File descriptors of listeners whose sockets were passed; the others open their own. */
export type SocketsByListener = Readonly<Partial<Record<ListenerName, number>>>

interface Place {
  readonly name: ListenerName
  readonly address: string
  readonly port: number
}

/** The listeners that this configuration has. */
const places = (values: Values): readonly Place[] => [
  ...(plainProxyOf(values) !== 'off'
    ? [
        {
          name: 'proxy' as const,
          address: values['bind-proxy-address'],
          port: values['proxy-port'],
        },
      ]
    : []),
  {
    name: 'proxy-secure',
    address: values['bind-proxy-address'],
    port: values['proxy-secure-port'],
  },
  { name: 'ops', address: values['bind-address'], port: values['serve-port'] },
]

interface Assigned {
  readonly sockets: SocketsByListener
  readonly mistakes: readonly string[]
  /** Notes on listeners whose passed socket is at another address than the configured one. */
  readonly notes: readonly string[]
}

/**
 * Gives each passed socket to the listener it is named after, else to the one whose address it is bound to. A socket that belongs to no
 * listener is a mistake: its clients would wait for answers for ever.
 */
export function assignSockets(passed: readonly PassedSocket[], values: Values): Assigned {
  const sockets: Partial<Record<ListenerName, number>> = {}
  const mistakes: string[] = []
  const notes: string[] = []
  const known = places(values)
  for (const socket of passed) {
    const { fd, name, at } = socket
    const place = known.find((each) => each.name === name) ?? known.find((each) => isAt(each, at))
    if (at === undefined) mistakes.push(`${shown(socket)} is no TCP socket that listens`)
    else if (place === undefined) {
      const names = known.map((each) => each.name).join(' or ')
      mistakes.push(
        `${shown(socket)} belongs to no listener: name it ${names}, or bind it where one listens`,
      )
    } else if (sockets[place.name] !== undefined) {
      mistakes.push(`${shown(socket)} is a second one for ${place.name}`)
    } else {
      sockets[place.name] = fd
      if (place.port !== 0 && !isAt(place, at))
        notes.push(`${shown(socket)} is served, and nothing at ${place.address} port ${place.port}`)
    }
  }
  return { sockets, mistakes, notes }
}

const isAt = (place: Place, at: PassedSocket['at']): boolean =>
  at !== undefined && at.port === place.port && plain(at.address) === plain(place.address)

/** An address in its canonical spelling. */
const plain = (address: string): string =>
  new SocketAddress({ address, family: address.includes(':') ? 'ipv6' : 'ipv4' }).address

function shown({ fd, name, at }: PassedSocket): string {
  const called = name === '' ? '' : `${JSON.stringify(name)} `
  const bound = at === undefined ? '' : `, bound to ${at.address} port ${at.port}`
  return `the passed socket ${called}(file descriptor ${fd}${bound})`
}
