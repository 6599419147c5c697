import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from './wire/wire.ts'

/** An API server that answers whatever it is asked as it is told to. */
export class Teller {
  readonly url: string
  answer: (response: ServerResponse) => void = (response) => void response.end()
  /** The fields of the latest request that it answered so. */
  asked: IncomingHttpHeaders = {}

  constructor(url: string) {
    this.url = url
  }

  static async start(t: Teardown): Promise<Teller> {
    const server = createServer((request, response) => {
      if (request.url === '/readyz') response.end('ok')
      else {
        teller.asked = request.headers
        teller.answer(response)
      }
    })
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const teller = new Teller(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return teller
  }

  /** Answers whole with a list. */
  says(list: string): void {
    this.answer = (response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(list)
  }
}
