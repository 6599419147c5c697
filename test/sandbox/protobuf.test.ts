import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseApiVersion, type GVK } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { protobufFrame } from '../../src/api/codec/event-frame.ts'
import { fromProtobuf, toProtobuf } from '../../src/sandbox/protobuf.ts'

const bytesOf = (name: string): Buffer =>
  readFileSync(new URL(`../fixtures/${name}`, import.meta.url))

const jsonOf = (name: string): JsonObject => JSON.parse(bytesOf(name).toString()) as JsonObject

const pod: GVK = { group: '', version: 'v1', kind: 'Pod' }
const secret: GVK = { group: '', version: 'v1', kind: 'Secret' }
const event: GVK = { group: '', version: 'v1', kind: 'Event' }
const lease: GVK = { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' }

/** What is left of an object that went through protobuf. */
const through = (gvk: GVK, object: JsonObject): JsonObject =>
  fromProtobuf(toProtobuf(gvk, object)).object

/** An object's bytes without magic, type and the two empty fields at the end, in hex. */
function contentOf(gvk: GVK, object: JsonObject): string {
  const bytes = toProtobuf(gvk, object)
  const raw = 4 + 2 + (bytes[5] ?? 0)
  return bytes.subarray(raw + 2, -4).toString('hex')
}

const captured = (
  'configmap-get csinode-get endpoints-list endpointslices-list events-list error-404-object ' +
  'kubernetes-service lease-get node-get nodes-list pod-get pods-empty pods-list pods-on-node ' +
  'runtimeclasses-list secret-get services-list api-v1'
).split(' ')

for (const name of captured) {
  void t.test(`${name} as captured is the same in both encodings, to the byte`, async (t) => {
    const json = jsonOf(`${name}.json`)
    const { gvk, object } = fromProtobuf(bytesOf(`${name}.pb`))
    t.strictSame(object, json)
    t.equal(JSON.stringify(object), JSON.stringify(json), 'members stand in the same order')
    t.strictSame(toProtobuf(gvk, json), bytesOf(`${name}.pb`))
  })
}

void t.test('a metadata list says the kind of its items in JSON only', async (t) => {
  const json = jsonOf('pods-metadata.json')
  const items = json['items'] as readonly JsonObject[]
  const { gvk, object } = fromProtobuf(bytesOf('pods-metadata.pb'))
  t.strictSame(object, { ...json, items: items.map(({ metadata }) => ({ metadata })) })
  t.strictSame(toProtobuf(gvk, json), bytesOf('pods-metadata.pb'))
})

/** The events of a captured watch: type and object of each. */
function eventsOf(watch: Buffer): { type: string; object: JsonObject }[] {
  const events: { type: string; object: JsonObject }[] = []
  for (let at = 0; at < watch.length; at += 4 + watch.readUInt32BE(at)) {
    const frame = watch.subarray(at + 4, at + 4 + watch.readUInt32BE(at))
    const type = frame.subarray(2, 2 + (frame[1] ?? 0)).toString()
    const { object } = fromProtobuf(frame.subarray(frame.indexOf('k8s\0')))
    events.push({ type, object })
  }
  return events
}

const frameOf = ({ type, object }: { type: string; object: JsonObject }): Buffer => {
  const { kind, apiVersion } = object as { kind: string; apiVersion: string }
  return protobufFrame(type, toProtobuf({ ...parseApiVersion(apiVersion), kind }, object))
}

const watches = ['watch-configmaps', 'watch-bookmarks', 'watch-expired', 'watchlist-pods']
for (const name of [...watches, 'watchlist-empty']) {
  void t.test(`the frames of ${name} are written again to the byte`, async (t) => {
    const watch = bytesOf(`${name}.pb`)
    const events = eventsOf(watch)
    t.ok(events.length > 0)
    t.strictSame(Buffer.concat(events.map(frameOf)), watch)
  })
}

void t.test('an empty object has Go’s non-pointer fields', async (t) => {
  // Six strings, the generation and a time, each of no length or 0; then a spec that has only
  // pointers.
  t.equal(contentOf(lease, {}), '0a10' + '0a0012001a0022002a0032003800' + '4200' + '1200')
})

void t.test('a pointer to a zero is kept apart from no pointer', async (t) => {
  const object = through(pod, {
    spec: { containers: [], terminationGracePeriodSeconds: 0, automountServiceAccountToken: false },
  })
  t.strictSame(object['spec'], {
    containers: null,
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
  })
  t.strictSame(through(pod, {})['spec'], { containers: null })
})

void t.test('times keep seconds, micro times microseconds, and no time is null', async (t) => {
  const spec = {
    acquireTime: '2026-11-21T10:17:08.000001Z',
    renewTime: '1969-12-31T23:59:58.500000Z',
  }
  t.strictSame(through(lease, { spec })['spec'], spec)
  const shown = through(event, { firstTimestamp: '2026-11-21T12:17:08.999+02:00' })
  t.equal(shown['firstTimestamp'], '2026-11-21T10:17:08Z')
  t.equal(shown['lastTimestamp'], null)
  t.equal(shown['eventTime'], null)
  t.notOk('creationTimestamp' in (shown['metadata'] as JsonObject))
  t.notOk(
    'creationTimestamp' in
      (through(pod, { metadata: { creationTimestamp: null } })['metadata'] as JsonObject),
  )
})

void t.test(
  'bytes travel as base64, and keys are written in the order of their UTF-8',
  async (t) => {
    const data = { '😀': '', b: 'AAECAwQFBgcICQ==', '\uff01': 'bGFzdA==', a: 'Zmlyc3Q=' }
    const object = through(secret, { data })
    t.strictSame(object['data'], data)
    t.strictSame(Object.keys(object['data'] as JsonObject), ['a', 'b', '\uff01', '😀'])
  },
)

void t.test('a key named __proto__ is a key like any other', async (t) => {
  const object = through(secret, { stringData: JSON.parse('{"__proto__":"x"}') as JsonObject })
  t.strictSame(Object.entries(object['stringData'] as JsonObject), [['__proto__', 'x']])
})

void t.test('numbers of 64 bits come back negative and large', async (t) => {
  for (const gracePeriodSeconds of [
    -1,
    0,
    127,
    128,
    2 ** 31,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
  ]) {
    const spec = { containers: null, terminationGracePeriodSeconds: gracePeriodSeconds }
    t.strictSame(through(pod, { spec })['spec'], spec)
  }
})

void t.test('values that a schema does not allow throw with their path', async (t) => {
  const wrong: readonly (readonly [JsonObject, string])[] = [
    [{ spec: { hostNetwork: 'yes' } }, 'spec: hostNetwork: not a boolean'],
    [{ spec: { priority: 2 ** 31 } }, 'spec: priority: not a whole number, or out of range'],
    [{ spec: { priority: 1.5 } }, 'spec: priority: not a whole number, or out of range'],
    [{ spec: { containers: {} } }, 'spec: containers: not a list'],
    [{ metadata: { labels: [] } }, 'metadata: labels: not an object'],
    [{ metadata: { name: 1 } }, 'metadata: name: not a string'],
    [
      { metadata: { creationTimestamp: 'today' } },
      'metadata: creationTimestamp: "today" is not a time',
    ],
  ]
  for (const [object, message] of wrong)
    t.throws(() => toProtobuf(pod, object), { code: 'PATH_ERROR', message })
  t.throws(() => toProtobuf(secret, { data: { a: '*' } }), { message: 'data: not base64' })
})

void t.test('bytes that break off are refused', async (t) => {
  const whole = bytesOf('lease-get.pb')
  const withoutTail = whole.length - 4
  for (let end = 0; end < withoutTail; end++)
    t.throws(() => fromProtobuf(whole.subarray(0, end)), { code: 'MALFORMED_BODY' })
})

void t.test('numbers longer than 64 bits, groups and wrong wire types are refused', async (t) => {
  const head = '6b387300' + '0a09' + '0a0276311203506f64'
  for (const raw of [
    '0affffffffffffffffffff01',
    '0affffffffffffffffff01',
    '0b',
    '0800',
    '0a024001',
    '00',
    '120158',
  ])
    t.throws(
      () => fromProtobuf(Buffer.from(`${head}12${byte(raw.length / 2)}${raw}`, 'hex')),
      { code: 'MALFORMED_BODY' },
      raw,
    )
})

const byte = (value: number): string => value.toString(16).padStart(2, '0')

void t.test('more values than a body needs are refused before they fill the memory', async (t) => {
  const empties = Buffer.alloc(2 * 2_000_001)
  for (let at = 0; at < empties.length; at += 2) empties[at] = 0x12
  const head = Buffer.from(
    '6b387300' + '0a0d' + '0a027631' + '1207506f644c697374' + '128292f401',
    'hex',
  )
  t.throws(() => fromProtobuf(Buffer.concat([head, empties])), {
    code: 'MALFORMED_BODY',
    message: /more than 2000000 values/,
  })
})
