import t, { type Test as Tap } from 'tap'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { pod, pods, podsOfNode } from '../kit/cloud.ts'
import {
  onlineNode,
  goOnline,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'
import { mediaType, type Encoding } from '../../src/api/kube/media-type.ts'
import { fixture } from '../kit/fixture.ts'
import { ScriptedServer } from '../kit/scripted-server.ts'

const isList = ({ path }: { path: string }): boolean => path === '/api/v1/pods'

/** What the hub says of the collection when nobody else can be asked. */
async function remembered(
  cloud: CloudServer,
  hub: TestHub,
  encoding: Encoding,
): Promise<readonly string[]> {
  await goOffline(cloud, hub)
  const { names } = await hub.as('kubelet', { encoding }).list(podsOfNode)
  await goOnline(cloud, hub)
  return names
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `F1: a list cut anywhere is a break, and the old list stays: ${encoding}`,
    async (t) => {
      const cloud = await startCloud(t)
      for (const name of ['a', 'b', 'c', 'd']) {
        const annotations = { 'test.example/long': 'x'.repeat(100 * 1024) }
        const metadata = { name, namespace: 'default', annotations }
        cloud.sandbox.create(pods, { ...pod(name), metadata })
      }
      const hub = await startTestHub(t, { upstreams: [cloud] })
      const kubelet = hub.as('kubelet', { encoding })
      const before = await kubelet.list(podsOfNode)
      cloud.sandbox.delete(pods, 'b', 'default', { gracePeriodSeconds: 0 })
      const { length } = (await cloud.as('kubelet', { encoding }).get(podsOfNode)).body
      for (const offset of [0, 1, 30, 200, length >> 1, length - 200, length - 4, length - 1]) {
        using _cut = cloud.sandbox.faults.cut(offset, isList)
        const what = `cut after ${offset} of ${length} bytes`
        const status = await kubelet.get(podsOfNode).then(
          (answer) => answer.status,
          () => undefined,
        )
        // Where nothing of it has been passed on yet, the hub can say so; what is kept is no answer
        // while the API server is there.
        t.ok(status === undefined || status === 503, what)
      }
      {
        using _cut = cloud.sandbox.faults.cut(length - 1, isList)
        const counted = await hub.metric('nodehub_broken_answers_total')
        await t.rejects(kubelet.get(podsOfNode), 'what was begun is a break')
        await hub.reaches('nodehub_broken_answers_total', counted + 1)
      }
      t.strictSame(await remembered(cloud, hub, encoding), before.names)
      const now = ['default/a', 'default/c', 'default/d']
      t.strictSame((await kubelet.list(podsOfNode)).names, now)
      t.strictSame(await remembered(cloud, hub, encoding), now)
    },
  )

  void t.test(`a list in pages is no list: ${encoding}`, async (t) => {
    const { cloud, hub } = await onlineNode(t, 'a', 'b', 'c', 'd', 'e')
    const kubelet = hub.as('kubelet', { encoding })
    await kubelet.list(podsOfNode)
    cloud.sandbox.delete(pods, 'a', 'default', { gracePeriodSeconds: 0 })
    const page = async (token = ''): Promise<string> => {
      const { body } = await kubelet.get(`${podsOfNode}&limit=2${token && `&continue=${token}`}`)
      // The token is text in either encoding.
      return (
        /"continue":"([^"]+)"|(eyJ[\w-]{20,})/.exec(body.toString('latin1'))?.slice(1).join('') ??
        ''
      )
    }
    t.equal(await page(await page()), '', 'all were read')
    t.equal((await remembered(cloud, hub, encoding)).length, 5)
  })
}

const json = { 'Content-Type': 'application/json' }

const listOf = (version: number, ...names: string[]): string =>
  JSON.stringify({
    kind: 'PodList',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(version) },
    items: names.map((name) => ({
      metadata: { name, namespace: 'default', uid: name, resourceVersion: String(version) },
    })),
  })

type Break = (response: ServerResponse, text: string, length: number) => void

/**
 * The ways in which a connection fails before a list's end. `length`: of the whole that was
 * announced.
 */
const breaks: Readonly<Record<string, Break>> = {
  'its chunks break off': (response, text) => {
    response.writeHead(200, json)
    response.write(text, () => response.destroy())
  },
  'less comes than was announced': (response, text, length) => {
    response.writeHead(200, { ...json, 'Content-Length': String(length) })
    response.write(text, () => response.destroy())
  },
}

/** The ways in which a list is too short by its server's own account. */
const mistakes: Readonly<Record<string, Break>> = {
  'its chunks end too soon': (response, text) => void response.writeHead(200, json).end(text),
  'as much comes as was announced, which is too little': (response, text) => {
    response.writeHead(200, { ...json, 'Content-Length': String(Buffer.byteLength(text)) })
    response.end(text)
  },
}

const kept = listOf(10, 'a', 'b')
const whole = listOf(20, 'c', 'd')

/**
 * Asks for a list that comes to nothing at each of some lengths; tells what came of it but for
 * breaks and 503, and that it was not kept.
 */
async function broken(
  t: Tap,
  breakOff: Break,
  judge: (body: string | undefined, said: string) => boolean,
): Promise<void> {
  const teller = await ScriptedServer.start(t)
  const hub = await startTestHub(t, { upstreams: [teller] })
  const kubelet = hub.as('kubelet')
  teller.answerWith(kept)
  t.strictSame((await kubelet.list('/api/v1/pods')).names, ['default/a', 'default/b'])
  for (const length of [whole.length - 1, whole.length - 2, whole.indexOf('"d"'), 40, 1]) {
    const said = whole.slice(0, length)
    teller.answer = (response) => breakOff(response, said, whole.length)
    const body = await kubelet.get('/api/v1/pods').then(
      (answer) => (answer.status === 503 ? undefined : answer.body.toString()),
      () => undefined,
    )
    t.ok(judge(body, said), `after ${length} of ${whole.length} bytes: ${body ?? 'a break'}`)
  }
  t.equal(await hub.metric('nodehub_recorded_total{kind="list"}'), 1)
}

for (const [what, breakOff] of Object.entries(breaks)) {
  void t.test(`a list is a break or refused, and nothing else, where ${what}`, (t) =>
    broken(t, breakOff, (body) => body === undefined),
  )
}

for (const [what, breakOff] of Object.entries(mistakes)) {
  void t.test(`a list is what its server said, or a break, where ${what}`, (t) =>
    broken(t, breakOff, (body, said) => body === undefined || body === said),
  )
}

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(
    `F2: a client that hangs up in the middle leaves the old list as it was: ${encoding}`,
    async (t) => {
      const [before, after] = ['pods-on-node', 'pods-list'].map((name) =>
        fixture(`${name}.${encoding === 'json' ? 'json' : 'pb'}`),
      ) as [Buffer, Buffer]
      const teller = await ScriptedServer.start(t)
      const hub = await startTestHub(t, { upstreams: [teller] })
      const kubelet = hub.as('kubelet', { encoding })
      teller.answerWith(before, encoding)
      const { names } = await kubelet.list('/api/v1/pods')
      const asked = new Promise<ServerResponse>((resolve) => {
        teller.answer = (response) => {
          response.writeHead(200, { 'Content-Type': mediaType(encoding) })
          response.write(after.subarray(0, -100))
          resolve(response)
        }
      })
      const answer = await kubelet.open('/api/v1/pods')
      const upstream = await asked
      const gone = once(upstream, 'close')
      answer.destroy()
      await gone
      t.notOk(upstream.writableFinished, 'the upstream sees that its client has gone')
      teller.close()
      await hub.offline()
      t.strictSame((await kubelet.list('/api/v1/pods')).names, names)
    },
  )
}
