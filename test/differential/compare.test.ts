import t, { type Test } from 'tap'
import { toProtobuf } from '../../src/sandbox/protobuf.ts'
import { bytesField } from '../../src/api/codec/protobuf/wire.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { get } from './request-case.ts'
import { areEqual, compareWatch } from './compare.ts'
import type { Client } from './client.ts'

const watch = get('/api/v1/configmaps?watch=1&timeoutSeconds=1')
const gvk = { group: '', version: 'v1', kind: 'ConfigMap' }

interface Event {
  readonly type: string
  readonly object: JsonObject
}

const configMap = (metadata: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
})

const change = (type: string, name: string): Event => ({ type, object: configMap({ name }) })
const [a, b] = [change('ADDED', 'a'), change('MODIFIED', 'b')]
const initialEnd: Event = {
  type: 'BOOKMARK',
  object: configMap({
    resourceVersion: '7',
    annotations: { 'k8s.io/initial-events-end': 'true' },
  }),
}

const frames = {
  json: ({ type, object }: Event): Buffer => Buffer.from(`${JSON.stringify({ type, object })}\n`),
  protobuf: ({ type, object }: Event): Buffer => {
    const raw = bytesField(1, toProtobuf(gvk, object))
    const event = Buffer.concat([bytesField(1, Buffer.from(type)), bytesField(2, raw)])
    const length = Buffer.alloc(4)
    length.writeUInt32BE(event.length)
    return Buffer.concat([length, event])
  },
} as const

const types = {
  json: 'application/json',
  protobuf: 'application/vnd.kubernetes.protobuf;stream=watch',
} as const

type WatchEvents = readonly Event[] | undefined

/** A client behind which the same watch is answered by each of these in turn, then by the last. */
function client(
  name: string,
  encoding: keyof typeof frames,
  ...watches: readonly WatchEvents[]
): Client {
  let asked = 0
  return {
    name,
    host: '',
    agent: '',
    namespace: 'own',
    supports: () => true,
    ask: async () => {
      const events = watches[Math.min(asked++, watches.length - 1)]
      return (
        events && {
          line: 'HTTP/1.1 200 OK',
          status: 200,
          fields: ['Content-Type', types[encoding]],
          body: Buffer.concat(events.map(frames[encoding])).toString('latin1'),
          trailers: [],
          interim: [],
        }
      )
    },
    close: () => undefined,
  }
}

/** Whether a watch through the hub is taken for the API server's own. */
async function alike(direct: Client, hub: Client): Promise<boolean> {
  const answers = await compareWatch(watch, { direct, through: [hub] }, () => undefined)
  return answers.every(areEqual)
}

for (const encoding of ['json', 'protobuf'] as const) {
  const direct = (...watches: readonly WatchEvents[]): Client =>
    client('direct', encoding, ...watches)
  const hub = (...watches: readonly WatchEvents[]): Client => client('hub', encoding, ...watches)

  void t.test(`one answer that differs is a difference: ${encoding}`, async (t: Test) => {
    const whole = [initialEnd, a, b]
    const others: Readonly<Record<string, WatchEvents>> = {
      'an event is missing': [initialEnd, a],
      'one too many': [initialEnd, a, b, b],
      'another order': [initialEnd, b, a],
      'another type': [initialEnd, a, change('DELETED', 'b')],
      'another object': [initialEnd, a, change('MODIFIED', 'c')],
      'no end of initial events': [a, b],
    }
    for (const [name, watches] of Object.entries(others)) {
      t.notOk(await alike(direct(whole), hub(watches, whole)), `${name}, and then never again`)
    }
    t.ok(await alike(direct(whole), hub(whole)))
  })
}
