/**
 * Node's HTTP/1.1 for what listens. To import it by its name would be to read all of its names, of
 * which `WebSocket` and a few more load the whole client that Node brings along and nobody here
 * uses: 50 ms of a start, and what it takes of memory.
 */
export const { Agent, createServer, STATUS_CODES } = process.getBuiltinModule('node:http')
