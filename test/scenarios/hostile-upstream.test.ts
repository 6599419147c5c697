import t from 'tap'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { listHead, listTail } from '../../src/api/codec/render.ts'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import { objectOf } from '../kit/client.ts'
import { startOnlineHub } from '../kit/hub.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const megabyte = 1024 * 1024

interface HostileCloud {
  readonly url: string
  /** What it says to whoever does not ask whether it is ready; it stops when nobody takes it. */
  answer: (socket: Socket) => void
}

async function hostileCloud(
  t: Teardown,
  answer: HostileCloud['answer'],
  listed?: Encoding,
): Promise<HostileCloud> {
  const server = createServer((asked, response) => {
    if (asked.url === '/readyz') response.end('ok')
    else if (listed && asked.url?.startsWith('/api/v1/configmaps') && !asked.url.includes('watch'))
      response.writeHead(200, { 'Content-Type': mediaType(listed) }).end(emptyList(listed))
    else cloud.answer(asked.socket)
  })
  const cloud = { url: `http://127.0.0.1:${await portOf(t, server)}`, answer }
  return cloud
}

/** Writes `start`, and then `more` for as long as somebody takes it. */
function pour(start: string | Buffer, more: string | Buffer): (socket: Socket) => void {
  return (socket) => {
    socket.on('error', () => undefined)
    socket.write(start)
    const go = (): void => {
      while (!socket.destroyed && socket.write(more));
    }
    socket.on('drain', go)
    go()
  }
}

const emptyList = (encoding: Encoding): Buffer => {
  const kind = { group: '', version: 'v1', kind: 'ConfigMapList' }
  const meta = { resourceVersion: '10', continue: '' }
  return Buffer.concat([listHead(encoding, kind, meta, '', []), listTail(encoding)])
}

const headOf = (type: string): string => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n`
const json = headOf('application/json')
const protobuf = headOf('application/vnd.kubernetes.protobuf;stream=watch')
const longText = 'x'.repeat(megabyte)

const endless: readonly (readonly [what: string, Encoding, (socket: Socket) => void])[] = [
  ['a text without end', 'json', pour(`${json}{"type":"ADDED","object":{"kind":"`, longText)],
  [
    'objects nested without end',
    'json',
    pour(`${json}{"type":"ADDED","object":`, '{"a":'.repeat(20_000)),
  ],
  [
    'lists nested without end',
    'json',
    pour(`${json}{"type":"ADDED","object":`, '['.repeat(20_000)),
  ],
  [
    'a length of four gigabytes',
    'protobuf',
    pour(Buffer.concat([Buffer.from(protobuf), Buffer.from('ffffffff', 'hex')]), longText),
  ],
  [
    'a length of seventeen megabytes',
    'protobuf',
    pour(Buffer.concat([Buffer.from(protobuf), Buffer.from('01100000', 'hex')]), longText),
  ],
]

for (const [what, encoding, answer] of endless) {
  void t.test(`a watch with ${what} breaks off, and is counted`, async (t) => {
    const cloud = await hostileCloud(t, answer, encoding)
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    const kubelet = hub.as('kubelet', { encoding })
    const { resourceVersion } = await kubelet.list('/api/v1/configmaps')
    await kubelet.watch('/api/v1/configmaps', { resourceVersion })
    const counted = async (): Promise<boolean> =>
      Number(await hub.metric('nodehub_upstream_malformed_answers_total')) > 0
    t.ok(await until('the count', counted))
  })
}

void t.test('an endless list without items breaks off', async (t) => {
  const cloud = await hostileCloud(t, pour(`${json}{"kind":"PodList","a":"`, longText))
  const hub = await startOnlineHub(t, {
    upstreams: [cloud],
    config: { memoryLimitBytes: 24 * megabyte },
  })
  const asked = hub.as('kubelet').get('/api/v1/pods')
  const given = await asked.catch(() => undefined)
  t.ok(given === undefined || given.status >= 400)
})

const splitting: readonly (readonly [what: string, field: string])[] = [
  ['a bare CR', 'X-A: 1\rSet-Cookie: evil=1'],
  ['a bare LF', 'X-A: 1\nSet-Cookie: evil=1'],
  ['a NUL', 'X-A: 1\0Set-Cookie: evil=1'],
  ['a folded line', 'X-A: 1\r\n Set-Cookie: evil=1'],
  ['a name with a space', 'X-A : 1'],
]

for (const [what, field] of splitting) {
  void t.test(`an answer whose header is split by ${what} counts as none`, async (t) => {
    const cloud = await hostileCloud(t, (socket) => {
      socket.end(
        `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${field}\r\nContent-Length: 2\r\n\r\n{}`,
      )
    })
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    for (const component of ['kubelet', 'operator']) {
      const answer = await hub.as(component).get('/api/v1/configmaps')
      t.match(objectOf(answer), { kind: 'Status', code: 503 }, component)
      t.equal(answer.headers['set-cookie'], undefined)
    }
  })
}
