import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Incoming, WireReply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import { listen } from '../../../src/http/server/listener.ts'
import { chunked, mutated } from '../mutate.ts'
import { readAnswer, readRequests, valuesOf, type Message } from '../reference/http1.ts'
import { Finding, type Opening, type Outcome, type Target } from '../target.ts'

const seeds = [
  'GET /api/v1/pods HTTP/1.1\r\nHost: hub\r\n\r\n',
  'POST /a HTTP/1.1\r\nHost: hub\r\nContent-Length: 5\r\n\r\nhello',
  'POST /b HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n5;x="y"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n',
  'POST /c HTTP/1.1\r\nHost: hub\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: hub\r\n\r\n',
  'POST /d HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello',
  'GET /e HTTP/1.1\nHost: hub\n\n',
  'GET /f HTTP/1.1\r\nHost: hub\r\nX-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n',
  'PUT /g HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\nx',
  'PUT /h HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
  'CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n',
  'POST /q HTTP/1.0\r\nHost: hub\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: hub\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
  'GET /i HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n',
  'GET /j HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /k HTTP/1.1\r\nHost: hub\r\n\r\n',
  'POST /l HTTP/1.1\r\nHost: hub\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok',
  'HEAD /m HTTP/1.0\r\nHost: hub\r\nConnection: keep-alive\r\n\r\n',
  'GET http://other/n HTTP/1.1\r\nHost: hub\r\nX-N: a\0b\r\n\r\n',
  `GET /o HTTP/1.1\r\nHost: hub\r\n${'X-Many: 1\r\n'.repeat(300)}\r\n`,
  `GET /p HTTP/1.1\r\nHost: hub\r\nX-Long: ${'v'.repeat(40_000)}\r\n\r\n`,
].map((text) => Buffer.from(text, 'latin1'))

/** What a client may be seen to have asked for. */
interface Seen {
  readonly incoming: Incoming
  readonly line: string
  body: string | undefined
}

/**
 * The plain listener, over real sockets. What it takes for a request is one to a reader that
 * follows the standard to the letter, with the same body, in the same order: nothing is hidden in
 * another. What it answers can be read by such a reader, and nothing is left when a client goes.
 */
export const listenerTarget: Opening = {
  name: 'listener',
  open: async (): Promise<Target> => {
    const seen: Seen[] = []
    const listener = await listen({
      at: [{ host: '127.0.0.1', port: 0 }],
      maxConnections: 100,
      onBroken: () => undefined,
      handler: (incoming) => echo(incoming, seen),
    })
    return {
      name: 'listener',
      round: async (random) => {
        seen.length = 0
        const input = Buffer.concat(
          Array.from({ length: 1 + random.below(3) }, () =>
            mutated(random, random.of(seeds), seeds),
          ),
        )
        const said = await talk(listener.port, chunked(random, input))
        const gone = (): boolean => seen.every(({ incoming }) => incoming.signal.aborted)
        for (let turns = 0; turns < 100 && !gone(); turns++) await new Promise(setImmediate)
        return check(input, said, seen)
      },
      [Symbol.asyncDispose]: () => listener.close(0),
    }
  },
}

async function echo(incoming: Incoming, seen: Seen[]): Promise<WireReply> {
  const one: Seen = { incoming, line: `${incoming.method} ${incoming.url}`, body: undefined }
  seen.push(one)
  let body = ''
  try {
    for await (const chunk of incoming.body ?? []) body += (chunk as Buffer).toString('latin1')
    one.body = body
  } catch {
    // It broke off: the connection goes, and whatever is answered with it.
  }
  const text = Buffer.from(one.line, 'latin1')
  const headers = new HeaderList(['Content-Length', String(text.length)])
  return { kind: 'body', from: 'hub', status: 200, headers, body: text }
}

/**
 * Sends the chunks, and reads until the other end closes; says that no more will come when nothing
 * has come for a while.
 */
async function talk(port: number, chunks: readonly Buffer[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  for (const chunk of chunks) {
    if (chunk.length > 0) socket.write(chunk)
    await new Promise(setImmediate)
  }
  await untilQuiet(socket, () => said.length)
  socket.end()
  if (!socket.closed) await once(socket, 'close')
  return said
}

async function untilQuiet(socket: Socket, read: () => number): Promise<void> {
  for (let still = 0, last = -1; still < 12 && !socket.closed; still++) {
    await new Promise(setImmediate)
    if (read() !== last) still = 0
    last = read()
  }
}

function check(input: Buffer, said: string, seen: readonly Seen[]): Outcome {
  const allowed = readRequests(input.toString('latin1'))
  const whole = seen.filter(({ body }) => body !== undefined)
  for (const one of whole) {
    let expected = allowed.shift()
    // What a client expects that nobody here knows is refused, as API servers do.
    while (expected && !isSame(one, expected) && valuesOf(expected, 'expect').length > 0) {
      expected = allowed.shift()
    }
    if (!expected || !isSame(one, expected)) {
      throw new Finding(`a request that is none to the letter: ${JSON.stringify(one.line)}`, input)
    }
  }
  if (seen.some(({ incoming }, i) => incoming.upgrade && i < seen.length - 1)) {
    throw new Finding('a request within another protocol', input)
  }
  checkAnswers(input, said, seen)
  for (const { incoming } of seen) {
    if (!incoming.signal.aborted) throw new Finding('an exchange outlives its client', input)
  }
  return whole.length > 0 ? 'taken' : 'refused'
}

const isSame = ({ line, body }: Seen, expected: Message): boolean =>
  lineOf(expected) === line && expected.body === body

const lineOf = ({ line }: Message): string =>
  line.slice(0, line.lastIndexOf(' ')).trimEnd().replace(/ +/, ' ')

/** Each answer is that to the request at its place; after the last there may be one refusal. */
function checkAnswers(input: Buffer, said: string, seen: readonly Seen[]): void {
  let at = 0
  for (const { line, incoming } of seen) {
    if (at >= said.length) return
    const answer = readAnswer(said, at, incoming.method)
    if (!answer) return checkCut(input, said.slice(at))
    const isOwn = incoming.method === 'HEAD' || answer.body === line
    if (!isOwn && !/^HTTP\/1\.1 (?:4|5)/.test(answer.line)) {
      throw new Finding(`the answer to another request: ${JSON.stringify(answer.body)}`, input)
    }
    at = answer.end
  }
  const isRefusal = readAnswer(said, at) ?? /^HTTP\/1\.1 [45]/.test(said.slice(at))
  if (at < said.length && !isRefusal) checkCut(input, said.slice(at))
}

/**
 * What cannot be read may be the beginning of an answer that broke off with its connection, and
 * nothing else.
 */
function checkCut(input: Buffer, rest: string): void {
  if (!/^HTTP\/1\.1 (?:200 OK|100 Continue)\r\n/.test(rest)) {
    throw new Finding(`what is no answer: ${JSON.stringify(rest.slice(0, 200))}`, input)
  }
}
