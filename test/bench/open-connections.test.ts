import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import t from 'tap'
import { openConnections } from '../../bench/measure/open-connections.ts'

void t.test(
  'connections of a process to a port are counted, as long as they are open',
  async (t) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const before = openConnections(process.pid, port)
    const sockets = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    t.equal(openConnections(process.pid, port), before + 2)
    for (const socket of sockets) socket.destroy()
    await Promise.all(sockets.map((socket) => once(socket, 'close')))
    t.equal(openConnections(process.pid, port), before)
  },
)
