/**
 * To be imported before a test file's own modules. An `import` of `node:http` reads each of its
 * exports. These are loaded when they are read, with all of fetch: 20 to 40 ms of the processor, in
 * which nothing is done for tests or hubs.
 */
import http from 'node:http'

for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent']) Reflect.deleteProperty(http, name)
