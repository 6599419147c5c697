import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { tableAccept } from '../kit/client.ts'
import { startOnlineHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const path = '/apis/example.com/v1/namespaces/default/things'

const thing = (name: string, resourceVersion: string): JsonObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name, namespace: 'default', resourceVersion },
})

const frameOf = (type: string, object: JsonObject): string =>
  `${JSON.stringify({ type, object })}\n`

interface AggregatedServer extends AsyncDisposable {
  readonly url: string
  /** Sends an event on each watch that is open, or begins before this version. */
  send(version: number, frame: string): void
}

/** An aggregated API server with one thing, at version 5. */
async function aggregatedServer(t: Teardown): Promise<AggregatedServer> {
  const watches = new Set<ServerResponse>()
  const sent: { readonly version: number; readonly frame: string }[] = []
  const server = createServer((asked, answer) => {
    const { pathname, searchParams } = new URL(asked.url ?? '', 'http://a')
    if (pathname !== path) return void answer.end('{}')
    answer.writeHead(200, { 'Content-Type': 'application/json', 'Audit-Id': 'a' })
    if (searchParams.has('watch')) {
      answer.flushHeaders()
      const from = Number(searchParams.get('resourceVersion'))
      for (const { version, frame } of sent) if (version > from) answer.write(frame)
      watches.add(answer)
      answer.on('close', () => watches.delete(answer))
      return
    }
    const items = [thing('a', '5')]
    const metadata = { resourceVersion: '5' }
    answer.end(JSON.stringify({ apiVersion: 'example.com/v1', kind: 'ThingList', metadata, items }))
  })
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
  }
  t.teardown(stop)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    send: (version, frame) => {
      sent.push({ version, frame })
      for (const watch of watches) watch.write(frame)
    },
    [Symbol.asyncDispose]: stop,
  }
}

const unread: Readonly<Record<string, string>> = {
  'a bookmark without a resource version': frameOf('BOOKMARK', {
    apiVersion: 'example.com/v1',
    kind: 'Thing',
    metadata: {},
  }),
  'a bookmark of nothing': frameOf('BOOKMARK', { metadata: {} }),
  'an event of an unknown type': frameOf('MOVED', thing('a', '8')),
}

const clients = {
  kubelet: {},
  kubectl: { accept: tableAccept },
  curl: {},
}

for (const [what, frame] of Object.entries(unread)) {
  for (const [component, options] of Object.entries(clients)) {
    void t.test(`${what} passes as it came, to ${component}`, async (t) => {
      await using cloud = await aggregatedServer(t)
      const hub = await startOnlineHub(t, { upstreams: [cloud] })
      const client = hub.as(component, options)
      t.equal((await client.list(path)).resourceVersion, '5')
      const watch = await client.watch(path, { resourceVersion: '5' })
      const [b, c, d] = ['b', 'c', 'd'].map((name, at) =>
        frameOf('ADDED', thing(name, `${6 + at}`)),
      )
      cloud.send(6, `${b}`)
      cloud.send(7, `${c}`)
      cloud.send(7, frame)
      const begun = await watch.take(3)
      cloud.send(8, `${d}`)
      const again = await client.watch(path, { resourceVersion: '5' })
      for (const events of [[...begun, ...(await watch.take(1))], await again.take(4)])
        t.strictSame(
          events.map((each) => String(each.frame)),
          [b, c, frame, d],
        )
      watch.hangUp()
      again.hangUp()
      if (component !== 'kubelet') return
      await cloud[Symbol.asyncDispose]()
      await hub.offline()
      const { names } = await client.list(path)
      t.strictSame(names, ['default/a', 'default/b', 'default/c', 'default/d'], 'all are recorded')
    })
  }
}
