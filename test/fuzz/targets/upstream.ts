import { createServer, connect } from 'node:net'
import { gunzipSync, gzipSync } from 'node:zlib'
import { startTestHub, type TestHub } from '../../kit/hub.ts'
import { corpus } from '../corpus.ts'
import { chunked, mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { bodySoFar, readAnswer, valuesOf, type Message } from '../reference/http1.ts'
import { framesOf } from '../reference/json.ts'
import { Finding, type Opening, type Outcome, type Target } from '../target.ts'
import { portOf } from '../../kit/wire/listening.ts'

/** What is asked, and by whom: recorded and not, filtered and not, whole and streamed. */
const requests = [
  { component: 'kubelet', path: 'pods/a', accept: 'application/json' },
  { component: 'kubelet', path: 'configmaps', accept: 'application/json' },
  {
    component: 'kubelet',
    path: 'configmaps?watch=true&resourceVersion=0',
    accept: 'application/json',
  },
  { component: 'kube-proxy', path: 'services', accept: 'application/vnd.kubernetes.protobuf' },
  { component: 'kubelet', path: 'pods', accept: 'application/vnd.kubernetes.protobuf' },
  { component: 'kubelet', path: 'pods?watch=true', accept: 'application/vnd.kubernetes.protobuf' },
  { component: 'operator', path: 'pods', accept: 'application/json' },
  { component: 'operator', path: 'pods?watch=true', accept: 'application/json' },
] as const

const bodies = {
  'application/json': corpus(/\.json$/),
  'application/vnd.kubernetes.protobuf': corpus(/\.pb$/),
}

const heads = [
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nAudit-Id: x\r\nContent-Length: LENGTH\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE;stream=watch\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nContent-Encoding: gzip\r\nContent-Length: LENGTH\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nContent-Length: LENGTH\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nContent-Length: LENGTH\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Type: TYPE\r\nX-Split: a\rSet-Cookie: b\r\nContent-Length: LENGTH\r\n\r\n',
  'HTTP/1.1 404 Not Found\r\nContent-Type: TYPE\r\nContent-Length: LENGTH\r\n\r\n',
  'HTTP/1.1 503 Service Unavailable\r\nContent-Length: LENGTH\r\n\r\n',
].map((text) => Buffer.from(text, 'latin1'))

const atOnce = 64

/**
 * A whole hub before an API server that says anything. An answer that is whole here was whole there
 * to a reader that follows the standard to the letter, with the same body; no field is in it that
 * was not sent; and the hub answers the next.
 */
export const upstreamTarget: Opening = {
  name: 'upstream',
  warmRounds: 1,
  open: async (): Promise<Target> => {
    const ends: (() => unknown)[] = []
    const t = { teardown: (end: () => unknown) => void ends.unshift(end) }
    const cloud = await hostileCloud(t)
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    let count = 0
    return {
      name: 'upstream',
      // Many at a time: a watch that has nothing to tell takes its second.
      round: async (random) => {
        const outcomes = await Promise.all(
          Array.from({ length: atOnce }, async () => {
            const asked = random.of(requests)
            const answer = answerTo(random, asked.accept)
            // Of a namespace of its own: nothing is known of it that could be answered instead.
            const namespace = `${asked.path.includes('watch=') ? 'watched' : 'n'}${count++}`
            cloud.answers.set(namespace, chunked(random, answer))
            const said = await ask(hub, `/api/v1/namespaces/${namespace}/${asked.path}`, asked)
            cloud.answers.delete(namespace)
            return check(answer, said, asked)
          }),
        )
        hub.lines.length = hub.answers.length = 0
        return outcomes.includes('taken') ? 'taken' : 'refused'
      },
      [Symbol.asyncDispose]: async () => {
        for (const end of ends) await end()
      },
    }
  },
}

function answerTo(random: Random, type: keyof typeof bodies): Buffer {
  const body = mutated(random, random.of(bodies[type]), bodies[type])
  const head = random.of(heads).toString('latin1')
  const sent = head.includes('gzip') && !random.once(4) ? gzipSync(body) : body
  const framed = head.includes('chunked') ? inChunks(random, sent) : sent
  const length = sent.length + (random.once(4) ? random.below(3) - 1 : 0)
  const text = head.replace('TYPE', type).replace('LENGTH', String(length))
  const whole = Buffer.concat([Buffer.from(text, 'latin1'), framed])
  return random.once(2) ? whole : mutated(random, whole, heads)
}

function inChunks(random: Random, body: Buffer): Buffer {
  const chunks = chunked(random, body).filter(({ length }) => length > 0)
  const framed = chunks.map((chunk) => {
    const size = chunk.length + (random.once(60) ? random.below(5) - 2 : 0)
    return Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])
  })
  return Buffer.concat([...framed, Buffer.from(random.once(8) ? '' : '0\r\n\r\n')])
}

interface HostileCloud {
  readonly url: string
  /** By namespace. */
  readonly answers: Map<string, readonly Buffer[]>
}

/**
 * Says that it is ready to whoever asks for it; to anything else it says the chunks, and closes.
 */
async function hostileCloud(t: { teardown(end: () => unknown): void }): Promise<HostileCloud> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (head: Buffer) => {
      if (head.includes('/readyz') || head.includes('/livez')) {
        return void socket.end(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
        )
      }
      const [, namespace = ''] = /namespaces\/(\w+)/.exec(head.toString('latin1')) ?? []
      // What is not listed is watched by its client alone.
      if (namespace.startsWith('watched') && !head.includes('watch=true'))
        return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
      for (const chunk of cloud.answers.get(namespace) ?? []) socket.write(chunk)
      socket.end()
    })
  })
  const port = await portOf(t, server)
  const cloud: HostileCloud = { url: `http://127.0.0.1:${port}`, answers: new Map() }
  return cloud
}

/** Everything the hub says, to the end of the connection. */
async function ask(
  hub: TestHub,
  path: string,
  { component, accept }: (typeof requests)[number],
): Promise<string> {
  const socket = connect(Number(new URL(hub.url).port), '127.0.0.1')
  const said: Buffer[] = []
  socket.on('data', (chunk: Buffer) => said.push(chunk)).on('error', () => undefined)
  const fields = `Host: localhost\r\nUser-Agent: ${component}/v1\r\nAccept: ${accept}\r\nConnection: close`
  socket.write(`GET ${path} HTTP/1.1\r\n${fields}\r\n\r\n`)
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(said).toString('latin1')
}

function check(input: Buffer, said: string, asked: (typeof requests)[number]): Outcome {
  const given = readAnswer(said)
  if (!given) return 'refused'
  if (given.framing === 'close')
    throw new Finding('an answer that does not say where it ends', input)
  const sent = readAnswer(input.toString('latin1'))
  if (sent) checkFields(input, given, sent)
  if (!given.line.includes(' 200 ')) return 'refused'
  if (asked.path.includes('watch') && asked.component !== 'operator') {
    // Where its stream dies a recorded watch ends, and its client asks again from the last event.
    checkEvents(input, given.body, bodySoFar(input.toString('latin1')), asked.accept)
    return 'taken'
  }
  if (!sent || !/ 200(?: |$)/.test(sent.line)) {
    throw new Finding('an answer that looks whole and is not', input)
  }
  // What goes to the client as it came is the client's to unpack.
  const isPacked = valuesOf(given, 'content-encoding').length > 0
  const body = isPacked ? sent.body : unpacked(sent)
  if (body === undefined) throw new Finding('what cannot be unpacked was passed on as whole', input)
  // Filters write services anew.
  if (asked.path !== 'services' && given.body !== body) {
    throw new Finding('another body than was sent', input)
  }
  return 'taken'
}

const ownFields =
  /^(?:connection|keep-alive|date|transfer-encoding|content-length|content-type|cache-control|retry-after|content-encoding|vary)$/i

function checkFields(input: Buffer, given: Message, sent: Message): void {
  const names = new Set(sent.fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  const added = given.fields.find(
    (name, i) => i % 2 === 0 && !ownFields.test(name) && !names.has(name.toLowerCase()),
  )
  if (added !== undefined && / 200 /.test(given.line))
    throw new Finding(`a field that the upstream did not send: ${added}`, input)
}

/** The body without its gzip; `undefined` where it has none that it says it has. */
function unpacked(message: Message): string | undefined {
  if (valuesOf(message, 'content-encoding').length === 0) return message.body
  try {
    return gunzipSync(Buffer.from(message.body, 'latin1')).toString('latin1')
  } catch {
    return undefined
  }
}

/** Each event that was passed on was sent, and in this order. */
function checkEvents(input: Buffer, given: string, sent: string, accept: string): void {
  if (/content-encoding/i.test(input.toString('latin1'))) return
  const isSent =
    accept === 'application/json'
      ? isBeginning(jsonFrames(given), jsonFrames(sent))
      : sent.startsWith(given)
  if (!isSent) throw new Finding('other events than were sent', input)
}

const jsonFrames = (text: string): readonly string[] => framesOf(Buffer.from(text, 'latin1')).frames

const isBeginning = (given: readonly string[], sent: readonly string[]): boolean =>
  given.every((frame, i) => frame === sent[i])
