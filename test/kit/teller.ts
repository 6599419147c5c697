import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import type { Teardown } from './wire/wire.ts'

/** An API server that answers whatever it is asked as it is told to. */
export class Teller {
  readonly url: string
  answer: (response: ServerResponse) => void = (response) => void response.end()
  /** The fields of the latest request that it answered so. */
  asked: IncomingHttpHeaders = {}
  readonly #server: Server

  constructor(url: string, server: Server) {
    this.url = url
    this.#server = server
  }

  static async start(t: Teardown): Promise<Teller> {
    const server = createServer((request, response) => {
      if (request.url === '/readyz') response.end('ok')
      else {
        teller.asked = request.headers
        teller.answer(response)
      }
    })
    t.teardown(() => teller.leave())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const teller = new Teller(`http://127.0.0.1:${port}`, server)
    return teller
  }

  /** Answers whole with a list. */
  says(list: string | Buffer, encoding: Encoding = 'json'): void {
    this.answer = (response) =>
      response.writeHead(200, { 'Content-Type': mediaType(encoding) }).end(list)
  }

  /** Is there no more. */
  leave(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
