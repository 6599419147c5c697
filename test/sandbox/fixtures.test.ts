import t, { type Test } from 'tap'
import { isList, isObject, type Json, type JsonObject } from '../../src/api/kube/json.ts'
import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { readFields } from '../kit/wire-fields.ts'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { fixture } from '../kit/fixture.ts'
import { adminOf, clientOf, eventsOf, type Client } from './client.ts'

interface Entry {
  readonly name: string
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: string
  }
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string
}

const entries = JSON.parse(fixture('index.json').toString()) as Entry[]
const parsed = (name: string): JsonObject => JSON.parse(fixture(name).toString()) as JsonObject
const itemsOf = (name: string): JsonObject[] => parsed(name)['items'] as JsonObject[]

/** Objects as they were when the answers were taken. */
function seed(sandbox: Sandbox): void {
  const core = (resource: string) => ({ group: '', version: 'v1', resource })
  const put = (gvr: { group: string; version: string; resource: string }, object: JsonObject) =>
    sandbox.create(gvr, object)
  put(core('namespaces'), { metadata: { name: 'plant' } })
  for (const node of itemsOf('nodes-list.json')) put(core('nodes'), node)
  for (const name of ['pods', 'configmaps', 'services', 'endpoints', 'events']) {
    for (const object of itemsOf(`${name}-list.json`)) put(core(name), object)
  }
  put(core('secrets'), parsed('secret-get.json'))
  for (const service of itemsOf('kubernetes-service.json')) put(core('services'), service)
  put(core('serviceaccounts'), { metadata: { name: 'collector', namespace: 'plant' } })
  const discovery = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
  for (const slice of itemsOf('endpointslices-list.json')) put(discovery, slice)
  const leases = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' }
  put(leases, parsed('lease-before-update.json'))
  const storage = { group: 'storage.k8s.io', version: 'v1', resource: 'csinodes' }
  put(storage, parsed('csinode-get.json'))
  const classes = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' }
  for (const one of itemsOf('runtimeclasses-list.json')) put(classes, one)
  put(
    { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' },
    pumpDefinition,
  )
  const pumps = { group: 'plant.example.com', version: 'v1', resource: 'pumps' }
  for (const pump of itemsOf('custom-list.json')) put(pumps, pump)
}

const pumpDefinition: JsonObject = {
  metadata: { name: 'pumps.plant.example.com' },
  spec: {
    group: 'plant.example.com',
    scope: 'Namespaced',
    names: { plural: 'pumps', singular: 'pump', kind: 'Pump', listKind: 'PumpList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
        subresources: { status: {} },
      },
    ],
  },
}

const masked = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'managedFields',
  'continue',
  'token',
  'expirationTimestamp',
  // How long ago something was.
  'cells',
])

/** Without what differs from run to run. */
function masking(value: Json): Json {
  if (isList(value)) return value.map(masking)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      name === 'managedFields' ? [] : [[name, masked.has(name) ? name : masking(member)]],
    ),
  )
}

/** What a body says, whatever its encoding. */
function decoded(bytes: Buffer, contentType: string | undefined): Json {
  if (contentType === 'application/vnd.kubernetes.protobuf')
    return masking(fromProtobuf(bytes).object)
  if (contentType?.startsWith('application/json') && bytes.byteLength > 0) {
    return masking(JSON.parse(bytes.toString()) as Json)
  }
  return bytes.toString()
}

async function compare(t: Test, client: Client, entry: Entry): Promise<void> {
  const { method, path, headers, body } = entry.request
  const answer = await client.send(path, { method, headers, ...(body !== undefined && { body }) })
  const expected = new Map(entry.headers.map(([name, value]) => [name.toLowerCase(), value]))
  t.equal(answer.status, entry.status, `status of ${method} ${path}`)
  for (const name of [
    'content-type',
    'cache-control',
    'warning',
    'retry-after',
    'x-content-type-options',
  ]) {
    t.equal(answer.headers[name], expected.get(name), `${name} of ${method} ${path}`)
  }
  if (method === 'GET') {
    t.equal(
      answer.headers['transfer-encoding'] === undefined,
      expected.get('transfer-encoding') === undefined,
      `whether ${method} ${path} has a Content-Length`,
    )
  }
  for (const name of ['audit-id', 'date', 'x-kubernetes-pf-flowschema-uid']) {
    t.ok(answer.headers[name], `${name} of ${method} ${path}`)
  }
  t.strictSame(
    decoded(answer.bytes, expected.get('content-type')),
    decoded(fixture(entry.body), expected.get('content-type')),
    `body of ${method} ${path}`,
  )
}

const named = (name: string): Entry => {
  const found = entries.find((entry) => entry.name === name)
  if (!found) throw new Error(`no answer ${name} was taken`)
  return found
}

const reads = [
  'configmap-get',
  'csinode-get',
  'endpoints-list',
  'endpointslices-list',
  'events-list',
  'kubernetes-service',
  'lease-get',
  'node-get',
  'nodes-list',
  'pod-get',
  'pods-empty',
  'pods-list',
  'pods-metadata',
  'pods-on-node',
  'runtimeclasses-list',
  'secret-get',
  'services-list',
]

void t.test('reads in JSON match a kube-apiserver’s answers', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  for (const name of reads) await compare(t, adminOf(sandbox), named(`${name}.json`))
  await compare(t, adminOf(sandbox), named('custom-list.json'))
  await compare(t, adminOf(sandbox), named('custom-list-protobuf-or-json'))
  await compare(t, adminOf(sandbox), named('pods-table'))
})

void t.test('reads in protobuf match a kube-apiserver’s answers', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  for (const name of reads) await compare(t, adminOf(sandbox), named(`${name}.pb`))
  await compare(t, adminOf(sandbox), named('custom-list-protobuf-only'))
})

void t.test('a list of a custom resource has its metadata after its items', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  const { text } = await adminOf(sandbox).send(named('custom-list.json').request.path)
  const projection = (body: string) =>
    body.replace(/"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"/g, '"$1":""')
  t.equal(projection(text), projection(fixture('custom-list.json').toString()))
})

void t.test('JSON has the bytes of a kube-apiserver', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  const projection = (body: string) =>
    body.replace(/"(uid|resourceVersion|creationTimestamp|time)":"[^"]*"/g, '"$1":""')
  for (const name of [
    'configmaps-list',
    'pods-list',
    'services-list',
    'events-list',
    'node-get',
    'secret-get',
  ]) {
    const { text } = await adminOf(sandbox).send(named(`${name}.json`).request.path)
    t.equal(projection(text), projection(fixture(`${name}.json`).toString()), name)
  }
})

void t.test('failures have a kube-apiserver’s messages', async (t) => {
  await using sandbox = await startSandbox({ freshnessMs: 1 })
  seed(sandbox)
  for (const name of [
    'create-binding',
    'error-400-body',
    'error-400-labels',
    'error-400-selector',
    'error-401',
    'error-404-object.json',
    'error-404-object.pb',
    'error-404-resource',
    'error-405',
    'error-406',
    'error-409-conflict',
    'error-409-exists',
    'error-415',
    'error-422',
    'error-422-match',
    'head',
    'options',
    'page-expired',
    'unknown-path',
    'watch-no-match.json',
  ]) {
    // Who shows a certificate is known by it, whatever token comes along.
    const client =
      name === 'error-401' ? clientOf(sandbox.url, sandbox.caCertificate) : adminOf(sandbox)
    await compare(t, client, named(name))
  }
})

void t.test('a 403 matches a kube-apiserver’s', async (t) => {
  await using sandbox = await startSandbox({ anonymous: true, authorizer: () => false })
  await compare(t, clientOf(sandbox.url, sandbox.caCertificate), named('error-403'))
})

void t.test('writes answer as those of a kube-apiserver', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  const client = adminOf(sandbox)
  for (const name of [
    'create-configmap.json',
    'create-dry-run',
    'create-event.json',
    'patch-strategic',
    'patch-apply',
  ]) {
    await compare(t, client, named(name))
  }
  const { metadata } =
    sandbox.get({ group: '', version: 'v1', resource: 'configmaps' }, 'written', 'plant') ?? {}
  const update = named('update-configmap.json')
  const fresh = JSON.parse(update.request.body ?? '') as { metadata: object }
  const body = JSON.stringify({ ...fresh, metadata: { ...fresh.metadata, ...metadata } })
  await compare(t, client, { ...update, request: { ...update.request, body } })
  for (const name of [
    'patch-merge',
    'patch-json',
    'patch-json-failed-test',
    'delete-pod-grace',
    'delete-collection',
  ]) {
    await compare(t, client, named(name))
  }
  for (const name of ['delete-configmap.json', 'delete-configmap.pb'])
    await compare(t, client, named(name))
})

void t.test('a pod is filled in when it is created', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  const { path, headers, body = '' } = named('create-pod.json').request
  const made = await adminOf(sandbox).json(path, { method: 'POST', headers, body })
  t.match(made.metadata.name, /^gen-[a-z0-9]{5}$/)
  const { name: _ours, ...metadata } = masking(made.metadata) as JsonObject
  const theirs = parsed('create-pod.json')
  const { name: _theirs, ...expected } = masking(theirs['metadata'] ?? null) as JsonObject
  t.strictSame(metadata, expected)
  t.strictSame(made.spec, theirs['spec'])
  t.strictSame(made.status, theirs['status'])
})

void t.test('discovery matches a kube-apiserver’s', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  const client = adminOf(sandbox)
  const byName = (list: readonly JsonObject[], key: string) =>
    new Map(list.map((one) => [one[key] as string, one]))
  const theirs = byName(parsed('api-v1.json')['resources'] as JsonObject[], 'name')
  const ours = await client.json('/api/v1', { headers: { Accept: 'application/json' } })
  t.ok(ours.resources.length > 20)
  for (const resource of ours.resources)
    t.strictSame(resource, theirs.get(resource.name), resource.name)
  const { headers } = named('apis-aggregated').request
  const aggregated = await client.json('/apis', { headers })
  const groups = new Map(
    (parsed('apis-aggregated.json')['items'] as JsonObject[]).map((group) => [
      (group['metadata'] as JsonObject)['name'],
      (group['versions'] as JsonObject[])[0],
    ]),
  )
  for (const group of aggregated.items) {
    const known = byName(groups.get(group.metadata.name)?.['resources'] as JsonObject[], 'resource')
    for (const one of group.versions[0].resources)
      t.strictSame(one, known.get(one.resource), one.resource)
  }
})

void t.test('aggregated discovery carries its own type, and a tag', async (t) => {
  await using sandbox = await startSandbox()
  const { headers, path } = named('apis-aggregated').request
  const answer = await adminOf(sandbox).send(path, { headers })
  const expected = new Map(
    named('apis-aggregated').headers.map(([name, value]) => [name.toLowerCase(), value]),
  )
  for (const name of ['content-type', 'cache-control', 'vary'])
    t.equal(answer.headers[name], expected.get(name))
  t.match(answer.headers['etag'], /^"[0-9A-F]{128}"$/)
})

/** The events of an answer that was taken, masked. */
function takenEvents(name: string): Json[] {
  const bytes = fixture(name)
  if (!name.endsWith('.pb')) {
    return bytes
      .toString()
      .trim()
      .split('\n')
      .map((line) => masking(JSON.parse(line) as Json))
  }
  return framesOf(bytes).map(decodedFrame)
}

function framesOf(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at + 4 <= bytes.length;) {
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) break
    frames.push(bytes.subarray(at + 4, end))
    at = end
  }
  return frames
}

function decodedFrame(frame: Buffer): Json {
  const fields = new Map(
    [...readFields(frame)].map(({ number, value }) => [number, value as Buffer]),
  )
  const raw = [...readFields(fields.get(2) ?? Buffer.alloc(0))][0]?.value as Buffer
  return { type: String(fields.get(1)), object: masking(fromProtobuf(raw).object) }
}

/** As many events of a watch as were taken, asked for as they were. */
async function shownEvents(sandbox: Sandbox, entry: Entry, count: number): Promise<Json[]> {
  const { path, headers } = entry.request
  const answer = await adminOf(sandbox).open(path, { headers })
  try {
    if (entry.name.endsWith('.pb')) {
      let bytes = Buffer.alloc(0)
      for await (const chunk of answer) {
        bytes = Buffer.concat([bytes, chunk as Buffer])
        if (framesOf(bytes).length >= count) break
      }
      return framesOf(bytes).map(decodedFrame)
    }
    const events = eventsOf(answer)
    const shown: Json[] = []
    while (shown.length < count) shown.push(masking((await events.next()) as Json))
    return shown
  } finally {
    answer.destroy()
  }
}

void t.test('a watch begins as that of a kube-apiserver', async (t) => {
  await using sandbox = await startSandbox()
  seed(sandbox)
  for (const name of [
    'watch-custom.json',
    'watch-metadata.json',
    'watch-table.json',
    'watchlist-pods.json',
    'watchlist-pods.pb',
    'watchlist-empty.pb',
  ]) {
    const taken = takenEvents(name)
    t.strictSame(await shownEvents(sandbox, named(name), taken.length), taken, name)
  }
})

void t.test('a watch from a compacted version gets an ERROR event', async (t) => {
  await using sandbox = await startSandbox({ firstVersion: 883 })
  seed(sandbox)
  for (const name of ['watch-expired.json', 'watch-expired.pb']) {
    t.strictSame(await shownEvents(sandbox, named(name), 1), takenEvents(name), name)
  }
})

void t.test('a future version is too large', async (t) => {
  await using sandbox = await startSandbox({ firstVersion: 837, freshnessMs: 1 })
  await compare(t, adminOf(sandbox), named('error-504-too-large-version'))
})

void t.test('watch events match a kube-apiserver’s, with selectors too', async (t) => {
  for (const [name, object] of [
    ['watch-configmaps.json', 'w1'],
    ['watch-configmaps.pb', 'w2'],
    ['watch-selector-transitions.json', 'w3'],
  ] as const) {
    await using sandbox = await startSandbox()
    seed(sandbox)
    const entry = named(name)
    const path = entry.request.path.replace(
      /resourceVersion=[0-9]+/,
      `resourceVersion=${sandbox.version}`,
    )
    const gvr = { group: '', version: 'v1', resource: 'configmaps' }
    const state = (watch: string, a: string) => ({
      metadata: { name: object, namespace: 'plant', labels: { watch } },
      data: { a },
    })
    sandbox.create(gvr, state('yes', '1'))
    sandbox.update(gvr, state('yes', '2'))
    sandbox.update(gvr, state('no', '2'))
    sandbox.update(gvr, state('yes', '2'))
    sandbox.delete(gvr, object, 'plant')
    const taken = takenEvents(name)
    const shown = await shownEvents(
      sandbox,
      { ...entry, request: { ...entry.request, path } },
      taken.length,
    )
    t.strictSame(shown, taken, name)
  }
})
