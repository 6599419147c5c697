import { once } from 'node:events'
import { Duplex } from 'node:stream'
import t from 'tap'
import { refuse } from '../../../src/http/server/refusal.ts'

/** A connection that collects what is written to it. */
function connection(): { socket: Duplex; written: () => string } {
  let written = ''
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      written += chunk.toString()
      done()
    },
  })
  return { socket, written: () => written }
}

const failure = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code })

void t.test('an unparsable request gets one whole answer with Connection: close', async (t) => {
  for (const [code, status] of [
    ['HPE_HEADER_OVERFLOW', 431],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408],
    ['HPE_INVALID_TRANSFER_ENCODING', 501],
    ['HPE_INVALID_METHOD', 400],
  ] as const) {
    const { socket, written } = connection()
    refuse(failure(code), socket)
    await once(socket, 'finish')
    const [head = '', body = ''] = written().split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1\\.1 ${status} `))
    t.match(head, `Content-Length: ${Buffer.byteLength(body)}`)
    t.match(head, /Connection: close/)
    t.match(head, 'Content-Type: text/plain; charset=utf-8')
  }
})

void t.test('a refusal repeats no bytes of the request', async (t) => {
  const { socket, written } = connection()
  refuse(
    Object.assign(failure('HPE_INVALID_METHOD'), { rawPacket: Buffer.from('<script>') }),
    socket,
  )
  await once(socket, 'finish')
  t.notMatch(written(), 'script')
})

void t.test('a connection that takes no answer is destroyed', async (t) => {
  const reset = connection()
  refuse(failure('ECONNRESET'), reset.socket)
  t.equal(reset.socket.destroyed, true)
  t.equal(reset.written(), '')
  const ended = connection()
  ended.socket.end()
  refuse(failure('HPE_INVALID_METHOD'), ended.socket)
  t.equal(ended.socket.destroyed, true)
  t.equal(ended.written(), '')
})
