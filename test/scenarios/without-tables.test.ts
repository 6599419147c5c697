import t from 'tap'
import { tableAccept } from '../kit/client.ts'
import { startTestHub } from '../kit/hub.ts'
import { ScriptedServer } from '../kit/scripted-server.ts'

const things = '/apis/aggregated.example/v1/things'
const json = { 'Content-Type': 'application/json' }

const thing = (name: string, version: number): object => ({
  kind: 'Thing',
  apiVersion: 'aggregated.example/v1',
  metadata: { name, resourceVersion: String(version) },
})

const list = JSON.stringify({
  kind: 'ThingList',
  apiVersion: 'aggregated.example/v1',
  metadata: { resourceVersion: '10' },
  items: [thing('a', 10)],
})

const event = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`
const events = [
  event('BOOKMARK', thing('', 11)),
  event('ADDED', thing('b', 12)),
  event('MODIFIED', thing('a', 13)),
]

const onlyTables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const metadata = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json'

for (const [who, accept, recorded] of [
  ['takes whole objects, too', tableAccept, 3],
  ['would rather have metadata', metadata, 3],
  ['wants Tables only', onlyTables, 0],
] as const) {
  void t.test(`a watch by a server without conversions goes on: its client ${who}`, async (t) => {
    const teller = await ScriptedServer.start(t)
    const hub = await startTestHub(t, { upstreams: [teller] })
    const kubectl = hub.as('kubectl', { accept })
    teller.answerWith(list)
    t.equal((await kubectl.get(things)).body.toString(), list)
    const { promise: asked, resolve } = Promise.withResolvers<(text: string) => void>()
    teller.answer = (response) => {
      response.writeHead(200, json).flushHeaders()
      resolve((text) => void response.write(text))
    }
    const watch = await kubectl.watch(things, { resourceVersion: '10' })
    t.equal(watch.status, 200, 'its head waits for no event')
    const say = await asked
    for (const each of events) {
      // In two parts, of which the first does not say what it is of.
      say(each.slice(0, 12))
      say(each.slice(12))
      t.equal((await watch.next())?.frame.toString(), each)
    }
    watch.hangUp()
    t.equal(await hub.metric('nodehub_recorded_total{kind="watch"}'), recorded)
    t.equal(await hub.metric('nodehub_malformed_total'), 0)
  })
}
