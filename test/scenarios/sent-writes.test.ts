import t from 'tap'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { at, objectOf, type Answer } from '../kit/client.ts'
import { configMaps } from '../kit/cloud.ts'
import { startOnlineHub, startCloud, type CloudServer } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const path = '/api/v1/namespaces/default/configmaps'

/**
 * An API server that acts on writes at once and answers them when it is told to; what it is asked
 * to read never comes whole before.
 */
async function slowCloud(t: Teardown, behind: CloudServer) {
  const finished = Promise.withResolvers<void>()
  let acted = (): void => undefined
  const passOn = (asked: IncomingMessage, response: ServerResponse): void => {
    const { method, url, headers } = asked
    const up = request(`${behind.url}${url}`, { method, headers, agent: false }, (answer) => {
      if (method !== 'POST') return void answer.pipe(response.writeHead(answer.statusCode ?? 0))
      void finished.promise.then(() => {
        response.writeHead(answer.statusCode ?? 0, answer.rawHeaders)
        answer.pipe(response)
      })
      acted()
    })
    // The API server behind may end in mid-request, with its test.
    up.once('error', () => response.destroy())
    asked.pipe(up)
  }
  const server = createServer((asked, response) => {
    if (!asked.url?.startsWith(`${path}/`)) return passOn(asked, response)
    response.writeHead(200, { 'Content-Type': 'application/json', 'Audit-Id': 'a' })
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } }
    response.write(`${JSON.stringify(object).slice(0, -1)},"data":{"a":"${'x'.repeat(2_700_000)}`)
    void finished.promise.then(() => response.end('"}}'))
  })
  const port = await portOf(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    /** Resolves when it has acted on the next write, and not answered it. */
    next: () => new Promise<void>((resolve) => (acted = resolve)),
    finish: () => finished.resolve(),
  }
}

/**
 * As client-go, which sends again what is answered with Retry-After, ten times at most; `waited`
 * stands for the time it waits.
 */
async function repeating(send: () => Promise<Answer>, waited: () => void): Promise<Answer> {
  let answer = await send()
  for (let i = 0; i < 10 && answer.headers['retry-after'] !== undefined; i++) {
    waited()
    answer = await send()
  }
  return answer
}

void t.test(
  'a write that an API server has seen is not shed for memory: its client would create a second object',
  async (t) => {
    const cloud = await startCloud(t)
    const slow = await slowCloud(t, cloud)
    const hub = await startOnlineHub(t, {
      upstreams: [slow],
      config: { memoryLimitBytes: 20 * 1024 * 1024 },
    })
    const kubelet = hub.as('kubelet')
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { generateName: 'made-', namespace: 'default' },
      data: { large: 'x'.repeat(2_900_000) },
    }
    const acted = slow.next()
    const created = repeating(
      () => kubelet.send(path, { method: 'POST', body }),
      () => slow.finish(),
    )
    await acted
    // Of all that is held the write holds most; together it is more than the hub may hold.
    const reads = ['a', 'b', 'c'].map((name) => kubelet.get(`${path}/${name}`))
    const first = await Promise.race([...reads, created])
    t.match(first, { status: 429 }, 'a read is shed, which may be repeated')
    t.equal(cloud.sandbox.list(configMaps).length, 1)
    slow.finish()
    const answer = await created
    t.equal(answer.status, 201)
    t.match(at(objectOf(answer), 'metadata', 'name'), /^made-/)
    t.strictSame(
      (await Promise.all(reads)).map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 200, 429],
    )
    t.equal(cloud.sandbox.list(configMaps).length, 1, 'it was created once')
  },
)
