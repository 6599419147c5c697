import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Connection, requestOf } from '../../bench/load/connection.ts'

/** Answers `/whole`, begins with `/watch`, and says nothing to anything else. */
async function server(t: Test): Promise<string> {
  const answers: Readonly<Record<string, string>> = {
    '/whole': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    '/watch': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  }
  const sockets = new Set<Socket>()
  const listening = createServer((socket) => {
    sockets.add(socket)
    socket.on('data', (bytes) => {
      const answer = answers[String(bytes).split(' ')[1] ?? '']
      if (answer !== undefined) socket.write(answer)
    })
    socket.on('error', () => undefined)
  }).listen(0, '127.0.0.1')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    listening.close()
  })
  await once(listening, 'listening')
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
}

const silenceMs = 50
const get = (path: string): string => requestOf('GET', path, {})

void t.test(
  'a connection may be idle, and a watch silent, for longer than an answer',
  async (t) => {
    const url = await server(t)
    const idle = await Connection.to({ url }, silenceMs)
    const watching = await Connection.to({ url }, silenceMs)
    t.teardown(() => [idle, watching].forEach((each) => each.close()))
    await idle.ask(get('/whole'))
    let ended = false
    const head = new Promise<number>((resolve) => {
      watching
        .ask(get('/watch'), { mayBeSilent: true, onHead: resolve })
        .catch(() => (ended = true))
    })
    t.equal(await head, 200)

    for (const path of ['/nothing', '/watch']) {
      const hanging = await Connection.to({ url }, silenceMs)
      await t.rejects(hanging.ask(get(path)), { message: `silence for ${silenceMs} ms` }, path)
    }

    t.equal((await idle.ask(get('/whole'))).status, 200)
    t.notOk(ended)
  },
)
