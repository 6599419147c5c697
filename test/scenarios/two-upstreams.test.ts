import t from 'tap'
import type { Client } from '../kit/client.ts'
import { podsOfNode } from '../kit/cloud.ts'
import { Condition } from '../kit/condition.ts'
import { startOnlineHub, startCloud } from '../kit/hub.ts'

const asked = [
  podsOfNode,
  '/api/v1/namespaces/default/pods/a',
  '/api/v1/services',
  '/api/v1/nodes/edge-1',
  '/api',
  '/version',
]

/** Reads without a pause, and everything that went wrong with it. */
class Load {
  readonly errors: string[] = []
  answers = 0
  #stopped = false
  readonly #running: Promise<void>[]
  readonly #condition = new Condition()

  constructor(clients: readonly Client[]) {
    this.#running = clients.map((client, i) => this.#ask(client, i))
  }

  async #ask(client: Client, from: number): Promise<void> {
    for (let i = from; !this.#stopped; i++) {
      const path = asked[i % asked.length] ?? ''
      await client.get(path).then(
        ({ status }) => status === 200 || this.errors.push(`${path}: ${status}`),
        (error: Error) => this.errors.push(`${path}: ${error.message}`),
      )
      this.answers++
      this.#condition.changed()
    }
  }

  async untilMore(count: number): Promise<void> {
    const wanted = this.answers + count
    await this.#condition.until(() => this.answers >= wanted)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#running)
  }
}

for (const mode of ['round-robin', 'priority']) {
  void t.test(
    `one of two API servers dies ten times, and no reader sees it: ${mode}`,
    async (t) => {
      const cloud = await startCloud(t)
      cloud.addPods('a', 'b', 'c')
      const other = await cloud.sandbox.lag(0)
      t.teardown(() => other[Symbol.asyncDispose]())
      const hub = await startOnlineHub(t, {
        upstreams: [cloud, other],
        flags: [`--lb-mode=${mode}`],
      })
      const load = new Load([
        hub.as('kubelet'),
        hub.as('kubelet', { accept: 'application/vnd.kubernetes.protobuf,application/json' }),
        hub.as('operator'),
        hub.as('operator'),
      ])
      for (let death = 0; death < 10; death++) {
        await load.untilMore(15)
        await cloud.unplug()
        await load.untilMore(15)
        await cloud.plug()
      }
      await load.stop()
      t.strictSame(load.errors, [])
      t.equal(hub.hub.online(), true)
      const answered = (origin: string) =>
        hub.metric(`nodehub_upstream_requests_total{upstream="${origin}",outcome="answered"}`)
      t.ok((await answered(cloud.url)) > 0, 'the one that died got requests again')
      t.ok((await answered(other.url)) > 0)
      t.notOk(
        hub.answers.some(({ source }) => source !== 'cloud'),
        'no client was answered by anything but the cloud',
      )
    },
  )
}

void t.test('a watch moves to the other API server, and misses nothing', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const other = await cloud.sandbox.lag(0)
  t.teardown(() => other[Symbol.asyncDispose]())
  const hub = await startOnlineHub(t, { upstreams: [cloud, other], flags: ['--lb-mode=priority'] })
  const kubelet = hub.as('kubelet')
  const { resourceVersion } = await kubelet.list(podsOfNode)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion })
  await cloud.unplug()
  cloud.addPods('b')
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'b' } } })
})

void t.test('an API server that lags takes back nothing that is known already', async (t) => {
  const cloud = await startCloud(t)
  cloud.addPods('a', 'b', 'c')
  const behind = await cloud.sandbox.lag(2)
  t.teardown(() => behind[Symbol.asyncDispose]())
  const hub = await startOnlineHub(t, { upstreams: [cloud, behind], flags: ['--lb-mode=priority'] })
  const kubelet = hub.as('kubelet')
  const newest = await kubelet.list('/api/v1/pods')
  await cloud.unplug()
  // From whatever the server has at hand, which is older than what the node has seen.
  t.equal((await kubelet.get('/api/v1/pods?resourceVersion=0')).status, 200)
  await behind[Symbol.asyncDispose]()
  await hub.offline()
  const offline = await kubelet.list('/api/v1/pods')
  t.equal(offline.resourceVersion, newest.resourceVersion)
  t.strictSame(offline.names, newest.names)
})
