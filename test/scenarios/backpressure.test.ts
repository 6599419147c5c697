import t from 'tap'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Client } from '../kit/client.ts'
import { startOnlineHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const megabyte = 1024 * 1024

/**
 * What two sockets, the kernel's buffers between them and the hub may hold on the way; a list is
 * far more.
 */
const onTheWay = 24 * megabyte

const item = (i: number): string =>
  JSON.stringify({
    metadata: { name: `p-${i}`, namespace: 'default', uid: `u-${i}`, resourceVersion: '5' },
    data: 'x'.repeat(32 * 1024),
  })

function* longList(bytes: number): Generator<string> {
  yield '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":['
  for (let i = 0, sent = 0; sent < bytes; i++) {
    const text = `${i === 0 ? '' : ','}${item(i)}`
    sent += text.length
    yield text
  }
  yield ']}\n'
}

function* endlessWatch(): Generator<string> {
  for (let i = 0; ; i++) {
    yield `${JSON.stringify({ type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1', ...(JSON.parse(item(i)) as object) } })}\n`
  }
}

/** An API server that writes as long as somebody takes it, and reads bodies only when told to. */
class Pourer {
  readonly url: string
  written = 0
  answers: Iterable<string> = []
  /** The latest request, with its body unread. */
  request: IncomingMessage | undefined
  response: ServerResponse | undefined

  private constructor(url: string) {
    this.url = url
  }

  static async start(t: Teardown): Promise<Pourer> {
    const server = createServer((asked, response) => {
      if (asked.url === '/readyz' || asked.url === '/livez') response.end('ok')
      else if (asked.method === 'GET') void pourer.#pour(response)
      else Object.assign(pourer, { request: asked, response })
    })
    const pourer = new Pourer(`http://127.0.0.1:${await portOf(t, server)}`)
    return pourer
  }

  async #pour(response: ServerResponse): Promise<void> {
    this.response = response
    response.writeHead(200, { 'Content-Type': 'application/json' })
    const closed = new Promise((resolve) => void response.once('close', resolve))
    for (const text of this.answers) {
      if (response.destroyed) return
      this.written += text.length
      if (!response.write(text)) {
        await Promise.race([closed, new Promise((resolve) => void response.once('drain', resolve))])
      }
    }
    response.end()
  }
}

/**
 * Resolves once what `read` counts has not moved while another client was answered a good many
 * times.
 */
async function untilStill(hub: Client, read: () => number): Promise<number> {
  for (let still = 0, last = -1; still < 40; still = read() === last ? still + 1 : 0) {
    last = read()
    await hub.get('/readyz')
  }
  return read()
}

const path = '/api/v1/configmaps'

for (const component of ['kubelet', 'operator']) {
  void t.test(
    `a client that stops reading a list stops the cloud from sending it: ${component}`,
    async (t) => {
      const pourer = await Pourer.start(t)
      const hub = await startOnlineHub(t, { upstreams: [pourer] })
      pourer.answers = longList(50 * megabyte)
      const answer = await hub.as(component).open(path)
      const held = await untilStill(hub.as('operator'), () => pourer.written)
      t.ok(held < onTheWay, `${held} bytes are on the way`)
      let read = 0
      for await (const chunk of answer) read += (chunk as Buffer).length
      t.equal(read, pourer.written, 'all of it comes when it is read on')
      t.ok(read > 50 * megabyte)
    },
  )

  void t.test(
    `a client that stops reading a watch stops the cloud from sending it: ${component}`,
    async (t) => {
      const pourer = await Pourer.start(t)
      const hub = await startOnlineHub(t, { upstreams: [pourer] })
      pourer.answers = endlessWatch()
      const watch = await hub.as(component).watch(path, { resourceVersion: '5' })
      const held = await untilStill(hub.as('operator'), () => pourer.written)
      t.ok(held < onTheWay, `${held} bytes are on the way`)
      const { response } = pourer
      watch.hangUp()
      if (response && !response.destroyed) await once(response, 'close')
      t.pass('a client that leaves ends it in the cloud')
    },
  )
}

void t.test('a cloud that stops reading a body stops its client', async (t) => {
  const pourer = await Pourer.start(t)
  const hub = await startOnlineHub(t, { upstreams: [pourer] })
  let sent = 0
  let ended = false
  const posting = request(`${hub.url}${path}`, { method: 'POST', agent: false })
  const answered = once(posting, 'response') as Promise<[IncomingMessage]>
  const send = async (): Promise<void> => {
    while (sent < 50 * megabyte) {
      sent += megabyte
      if (!posting.write(Buffer.alloc(megabyte))) await once(posting, 'drain')
    }
    posting.end()
    ended = true
  }
  const sending = send()
  const held = await untilStill(hub.as('operator'), () => sent)
  t.notOk(ended)
  t.ok(held < onTheWay, `${held} bytes are on the way`)
  let read = 0
  for await (const chunk of pourer.request ?? []) read += (chunk as Buffer).length
  await sending
  t.equal(read, sent)
  pourer.response?.end('{}')
  const [answer] = await answered
  t.equal(answer.statusCode, 200)
  answer.resume()
})
