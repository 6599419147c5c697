import t from 'tap'
import { createServer, type ServerResponse } from 'node:http'
import { objectOf } from '../kit/client.ts'
import { startOnlineHub } from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'
import { portOf } from '../kit/wire/listening.ts'

const megabyte = 1024 * 1024

interface HeavyCloud {
  readonly url: string
  readonly finish: () => void
  /** An event of so many bytes for each watch. */
  readonly tell: (bytes: number) => void
}

/** An API server whose objects are large, and never come whole before it is told to finish them. */
async function heavyCloud(t: Teardown): Promise<HeavyCloud> {
  const unfinished: ServerResponse[] = []
  const watched: ServerResponse[] = []
  const server = createServer((asked, response) => {
    if (asked.url === '/readyz' || asked.url === '/livez') return void response.end('ok')
    const isWatch = asked.url?.includes('watch=true') === true
    // What is not listed is watched by its client alone.
    if (!isWatch && asked.url?.includes('kube-system') === true)
      return void response.writeHead(403).end()
    response.writeHead(200, { 'Content-Type': 'application/json' })
    if (isWatch) {
      response.flushHeaders()
      watched.push(response)
      return
    }
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } }
    response.write(
      `${JSON.stringify(object).slice(0, -1)},"data":{"a":"${'x'.repeat(10 * megabyte)}`,
    )
    unfinished.push(response)
  })
  const port = await portOf(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    finish: () => unfinished.forEach((response) => response.end('"}}')),
    tell: (bytes) => {
      const metadata = { name: 'a', resourceVersion: '7' }
      const data = { a: 'x'.repeat(bytes) }
      const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata, data }
      const event = JSON.stringify({ type: 'ADDED', object })
      for (const response of watched) response.write(`${event}\n`)
    },
  }
}

void t.test(
  'answers that have to be held whole are shed before memory goes, watches are not',
  async (t) => {
    const cloud = await heavyCloud(t)
    const hub = await startOnlineHub(t, {
      upstreams: [cloud],
      config: { memoryLimitBytes: 50 * megabyte },
    })
    const kubelet = hub.as('kubelet')
    const path = '/api/v1/namespaces/default/configmaps/a'
    // A filter reads it: whatever else comes passes as it is. With its unknown parameter no cacher
    // answers it.
    const watch = await kubelet.watch('/api/v1/namespaces/kube-system/configmaps', { other: '1' })
    const answers = [1, 2, 3].map(() => kubelet.get(path))
    const shed = await Promise.race(answers)
    t.match(objectOf(shed), { kind: 'Status', code: 429, reason: 'TooManyRequests' })
    t.equal(shed.headers['retry-after'], '1')
    t.equal(
      await hub.metric('nodehub_requests_rejected_total{reason="memory",priority_level="node"}'),
      1,
    )
    cloud.finish()
    const codes = (await Promise.all(answers)).map(({ status }) => status)
    t.strictSame(
      codes.toSorted((a, b) => a - b),
      [200, 200, 429],
    )
    t.equal(watch.status, 200)
    t.notOk(watch.answer.closed, 'the watch goes on')
    cloud.tell(13 * megabyte)
    t.equal(await watch.end(), 'broken', 'until it alone holds a quarter')
    t.equal(await hub.metric('nodehub_connections_cut_total{reason="memory"}'), 1)
  },
)
