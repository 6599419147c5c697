// In the network namespace of a node: passes what comes to a port of loopback on to a socket in the
// file system, which other namespaces reach, too (`relay.ts PORT SOCKET`); or connects whoever
// comes to that socket to the `ADDRESS PORT` of its first line (`relay.ts - SOCKET`).
import { connect, createServer, type Socket } from 'node:net'

const [, , port = '', socket = ''] = process.argv

if (port === '-') createServer((from) => from.once('readable', () => dial(from))).listen(socket)
else createServer((from) => join(from, connect(socket))).listen(Number(port), '127.0.0.1')

function dial(from: Socket): void {
  const [, host, at, rest = ''] = /^(\S+) (\d+)\n([^]*)$/.exec(String(from.read())) ?? []
  if (host === undefined) return void from.destroy()
  const to = connect(Number(at), host)
  to.write(rest)
  join(from, to)
}

function join(from: Socket, to: Socket): void {
  from.pipe(to).pipe(from)
  from.on('error', () => to.destroy())
  to.on('error', () => from.destroy())
}
