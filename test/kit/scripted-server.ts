import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import { portOf } from './wire/listening.ts'
import type { Teardown } from './wire/wire.ts'

/** An API server whose answers a test sets. */
export class ScriptedServer {
  readonly url: string
  answer: (response: ServerResponse) => void = (response) => void response.end()
  /** The headers of the latest request. */
  lastHeaders: IncomingHttpHeaders = {}
  readonly #server: Server

  constructor(url: string, server: Server) {
    this.url = url
    this.#server = server
  }

  static async start(t: Teardown): Promise<ScriptedServer> {
    const server = createServer((request, response) => {
      if (request.url === '/readyz' || request.url === '/livez') response.end('ok')
      else {
        teller.lastHeaders = request.headers
        teller.answer(response)
      }
    })
    const teller = new ScriptedServer(`http://127.0.0.1:${await portOf(t, server)}`, server)
    return teller
  }

  /** Answers each request with this list. */
  answerWith(list: string | Buffer, encoding: Encoding = 'json'): void {
    this.answer = (response) =>
      response.writeHead(200, { 'Content-Type': mediaType(encoding) }).end(list)
  }

  /** Stops the server. */
  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
