import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { text } from 'node:stream/consumers'
import type { Readable } from 'node:stream'
import t from 'tap'
import type { ListReply } from '../../../src/http/exchange/exchange.ts'
import { listReply } from '../../../src/hub/answers/replies.ts'
import { withEncoding } from '../../../src/hub/pipeline/encoding.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { startFlooded } from '../../kit/flooding.ts'
import { provenAs, startListener } from '../../kit/listener.ts'
import type { Teardown } from '../../kit/wire/wire.ts'

/** Values of one letter and of different lengths. */
const batchOf = (letter: string): readonly string[] =>
  Array.from({ length: 50 }, (_, at) => JSON.stringify({ data: letter.repeat(8_000 - 17 * at) }))

/** A stored list of the letter and of as many batches as its path says. */
function listOf(path: string): ListReply {
  const [, letter = '', batches] = path.split('/')
  const exchange = exchangeOf('/api/v1/pods', { headers: { Accept: 'application/json' } })
  const [representation] = exchange.representations
  if (!representation) throw new Error('no representation')
  const objects = batchOf(letter).map((value) => ({
    namespace: 'default',
    name: 'a',
    uid: '',
    resourceVersion: '1',
    bytes: Buffer.from(value),
  }))
  return listReply(representation, {
    gvk: { group: '', version: 'v1', kind: 'PodList' },
    resourceVersion: '7',
    extra: '',
    confirmedAt: 0,
    batches: Array.from({ length: Number(batches) }, () => ({ objects })),
  })
}

const listText = (letter: string, batches: number): string => {
  const head = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
  const batch = batchOf(letter)
  return `${head}${Array.from({ length: batches }, () => batch.join(',')).join(',')}]}\n`
}

const serve = withEncoding(() => undefined)(async ({ url }) => listOf(url))
const handler = provenAs((incoming) => serve({ ...exchangeOf('/'), ...incoming }))

/** Opens answers over HTTP/1.1, each on a connection of its own. */
async function overHttp1(t: Teardown): Promise<(path: string) => Promise<Readable>> {
  const { listener } = await startListener(t, handler)
  return async (path) => {
    const request = get({ port: listener.port, path, agent: false })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    return answer
  }
}

/** Opens answers over HTTP/2, all on one connection. */
async function overHttp2(t: Teardown): Promise<(path: string) => Promise<Readable>> {
  const { listener, ca } = await startFlooded(t, handler)
  const session = connectHttp2(`https://127.0.0.1:${listener.port}`, { ca })
  t.teardown(() => session.destroy())
  await once(session, 'connect')
  // One for all streams: those that are not read must not hold up the others.
  session.setLocalWindowSize(16 * 1024 * 1024)
  return async (path) => {
    const stream = session.request({ ':path': path })
    await once(stream, 'response')
    return stream
  }
}

/** The batches are more than what is taken on the way: by the kernel, or by a stream's window. */
const protocols = {
  'HTTP/1.1': { start: overHttp1, batches: 100 },
  'HTTP/2': { start: overHttp2, batches: 5 },
}

for (const [protocol, { start, batches }] of Object.entries(protocols)) {
  void t.test(
    `each list is its own, fast and slow readers side by side, over ${protocol}`,
    async (t) => {
      const open = await start(t)
      const list = (letter: string) => open(`/${letter}/${batches}`)
      const slow = await Promise.all(['a', 'b'].map(list))
      const gone = await list('c')
      await once(gone, 'readable')
      gone.destroy()
      for (const letter of ['d', 'e'])
        t.ok((await text(await list(letter))) === listText(letter, batches), letter)
      const [a, b] = await Promise.all(slow.map((answer) => text(answer)))
      t.ok(a === listText('a', batches), 'a')
      t.ok(b === listText('b', batches), 'b')
    },
  )
}
