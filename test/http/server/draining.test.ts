import t from 'tap'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { closeServer, HttpConnections } from '../../../src/http/server/draining.ts'
import { dial, valuesOf, type Teardown } from '../../kit/wire/wire.ts'
import { portOf } from '../../kit/wire/listening.ts'

async function serving(t: Teardown, answer: RequestListener) {
  const server = createServer(answer)
  const connections = new HttpConnections(server)
  const port = await portOf(t, server)
  return {
    server,
    port,
    stop: async () => {
      const over = closeServer(server)
      connections.drain()
      await over
    },
  }
}

const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

void t.test('a request on its way when the server is to stop is answered', async (t) => {
  const { server, stop, port } = await serving(t, (_request, response) => {
    response.end('here')
  })
  const accepted = once(server, 'connection')
  const client = await dial(t, port)
  await accepted
  const stopped = stop()
  const answer = await client.write(request).answer()
  t.match(answer, { status: 200, body: 'here' })
  t.strictSame(valuesOf(answer, 'connection'), ['close'], 'and it is the last one there')
  await stopped
})

void t.test('a connection that is idle is ended at once', async (t) => {
  const answered = Promise.withResolvers<void>()
  const { server, stop, port } = await serving(t, (_request, response) => {
    response.once('close', answered.resolve).end('here')
  })
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const client = await dial(t, port)
  const [connection] = await accepted
  t.match(await client.write(request).answer(), { status: 200 })
  await answered.promise
  const stopped = stop()
  t.notOk(connection.writable, 'before anything else happens')
  await stopped
})

void t.test('a kept-alive connection with a request is ended after its answer', async (t) => {
  const begun = Promise.withResolvers<() => void>()
  const { stop, port } = await serving(t, (_request, response) => {
    response.writeHead(200, { 'Content-Length': '4' }).write('he')
    begun.resolve(() => void response.end('re'))
  })
  const client = await dial(t, port)
  client.write(request)
  const finish = await begun.promise
  const stopped = stop()
  finish()
  const answer = await client.answer()
  t.match(answer, { status: 200, body: 'here' })
  t.strictSame(valuesOf(answer, 'connection'), ['keep-alive'])
  await stopped
})
