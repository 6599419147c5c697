/**
 * A process that was passed a listening socket as its file descriptor 3: says which port that is,
 * and greets everyone.
 */
import { createServer } from 'node:net'
import { bindServer } from '../../../src/http/server/listening.ts'

const server = createServer((socket) => socket.end('hello'))
const { port } = await bindServer(server, [{ fd: 3 }], () => undefined)
process.stdout.write(`${port}\n`)
