// In the network namespace of a node: passes what comes to a port of loopback on to a socket in the
// file system, which other namespaces reach, too (`relay.ts PORT SOCKET`); or connects whoever
// comes to that socket to the `ADDRESS PORT` of its first line (`relay.ts - SOCKET`).
import { connect, createServer, type Socket } from 'node:net'
import { joined } from './joined.ts'

const [, , port = '', socket = ''] = process.argv

if (port === '-') createServer((from) => from.once('readable', () => dial(from))).listen(socket)
else createServer((from) => joined(from, connect(socket))).listen(Number(port), '127.0.0.1')

function dial(from: Socket): void {
  const [, host, at, rest = ''] = /^(\S+) (\d+)\n([^]*)$/.exec(String(from.read())) ?? []
  if (host === undefined) return void from.destroy()
  const to = connect(Number(at), host)
  to.write(rest)
  joined(from, to)
}
