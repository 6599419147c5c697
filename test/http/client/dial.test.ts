import { existsSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import t from 'tap'
import { Connections } from '../../../src/http/client/connections.ts'
import { dial, dialer } from '../../../src/http/client/dial.ts'
import { keepAliveProbeMs } from '../../../src/http/client/tcp.ts'
import { authority } from '../../kit/wire/certificates.ts'
import { h2Upstream } from '../../kit/wire/h2-upstream.ts'

const table = '/proc/net/tcp'
const pki = await authority()
const skip = !existsSync(table) && 'the system does not show its timers'

const keepAlive = '02'

/** The timer of a connection, as the system has it: what it is for, and when it strikes. */
function timerOf({ localPort = 0, remotePort = 0 }: Socket): { kind: string; seconds: number } {
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')
  for (const line of readFileSync(table, 'utf8').split('\n').slice(1)) {
    const [, local = '', remote = '', , , timer = ''] = line.trim().split(/\s+/)
    if (!local.endsWith(`:${hex(localPort)}`) || !remote.endsWith(`:${hex(remotePort)}`)) continue
    const [kind = '', ticks = ''] = timer.split(':')
    return { kind, seconds: Number.parseInt(ticks, 16) / 100 }
  }
  throw new Error('no such connection')
}

void t.test(
  'F27: TCP probes connections of every kind before a NAT forgets them',
  { skip },
  async (t) => {
    const upstream = await h2Upstream(t, await pki.server())
    const credentials = { ca: pki.ca, files: [] }
    const connections = new Connections(credentials)
    t.teardown(() => connections[Symbol.asyncDispose]())
    const sockets: Record<string, Socket> = {
      'short requests': await dial(dialer(credentials, 'http/1.1'), upstream.origin),
      watches: await dial(dialer(credentials, 'h2 or http/1.1'), upstream.origin),
      upgrades: await connections.connect('node', upstream.origin),
    }
    t.ok(keepAliveProbeMs < 60_000)
    for (const [name, socket] of Object.entries(sockets)) {
      t.teardown(() => socket.destroy())
      const { kind, seconds } = timerOf(socket)
      t.equal(kind, keepAlive, name)
      t.ok(seconds <= keepAliveProbeMs / 1000, `${name}: ${seconds} s`)
    }
  },
)
