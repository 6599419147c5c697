/**
 * A process that was passed a listening socket as its file descriptor 3: says which port that is,
 * and greets everyone.
 */
import { createServer } from 'node:net'
import { listening } from '../../../src/http/server/listening.ts'

const server = createServer((socket) => socket.end('hello'))
const { port } = await listening(server, [{ fd: 3 }], () => undefined)
process.stdout.write(`${port}\n`)
