import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import t from 'tap'
import { openConnections } from '../../bench/measure/open-connections.ts'
import { portOf } from '../kit/wire/listening.ts'

void t.test(
  'connections of a process to a port are counted, as long as they are open',
  async (t) => {
    const port = await portOf(t, createServer())
    const before = openConnections(process.pid, port)
    const sockets = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    t.equal(openConnections(process.pid, port), before + 2)
    for (const socket of sockets) socket.destroy()
    await Promise.all(sockets.map((socket) => once(socket, 'close')))
    t.equal(openConnections(process.pid, port), before)
  },
)
