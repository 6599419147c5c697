/**
 * Node's HTTP/1.1 server. A named import would read every export, of which `WebSocket` and a few
 * more load Node's built-in client, which the hub does not use: 50 ms of a start, and memory.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
