import type { ServerResponse } from 'node:http'
import t from 'tap'
import { tableAccept } from '../kit/client.ts'
import { startTestHub } from '../kit/hub.ts'
import { ScriptedServer } from '../kit/scripted-server.ts'
import { until } from '../kit/until.ts'

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

for (const [who, accept] of [
  ['takes whole objects, too', tableAccept],
  ['would rather have metadata', metadata],
  ['wants Tables only', onlyTables],
] as const) {
  void t.test(`a watch by a server without conversions goes on: its client ${who}`, async (t) => {
    const teller = await ScriptedServer.start(t)
    const hub = await startTestHub(t, { upstreams: [teller] })
    const kubectl = hub.as('kubectl', { accept })
    teller.answerWith(list)
    t.equal((await kubectl.get(things)).body.toString(), list)
    const open: ServerResponse[] = []
    const say = (text: string): void => open.forEach((response) => void response.write(text))
    teller.answer = (response) => {
      response.writeHead(200, json).flushHeaders()
      open.push(response)
    }
    const watch = await kubectl.watch(things, { resourceVersion: '10' })
    t.equal(watch.status, 200, 'its head waits for no event')
    await until('the watch to be open', () => open.length === 1)
    for (const each of events) {
      // In two parts, of which the first does not say what it is of.
      say(each.slice(0, 12))
      say(each.slice(12))
      t.equal((await watch.next())?.frame.toString(), each)
    }
    watch.hangUp()
    t.equal(await hub.metric('nodehub_upstream_malformed_answers_total'), 0)
  })
}
