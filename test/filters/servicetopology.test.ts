import t from 'tap'
import { servicetopology } from '../../filters/servicetopology.ts'
import { cursorOf } from '../../src/api/codec/cursor.ts'
import { bytesField } from '../../src/api/codec/protobuf/wire.ts'
import type { Inputs } from '../../src/hub/filter/inputs.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import {
  inBothEncodings,
  filteredObject,
  filterResult,
  createdFilter,
} from '../kit/filter-result.ts'

const pool = { name: 'hangzhou', type: 'Edge', hostNetwork: undefined, labels: {}, annotations: {} }

/** Of node-1, which is in a pool with node-3; node-2 is in another, and no-such-node in none. */
const known = (topology: string | undefined, changes: Partial<Inputs> = {}): Partial<Inputs> => ({
  nodeName: 'node-1',
  pool,
  poolNodes: ['node-1', 'node-3'],
  topologies: {
    'default/other': 'kubernetes.io/hostname',
    ...(topology !== undefined && { 'default/web': topology }),
  },
  ...changes,
})

const nodes = ['node-1', 'node-2', 'node-3', 'no-such-node']

/**
 * How each version has the endpoints of a service on nodes, `undefined` being on none that is
 * known.
 */
const kinds: Readonly<Record<string, (on: readonly (string | undefined)[]) => JsonObject>> = {
  'EndpointSlice v1': (on) => ({
    ...slice('discovery.k8s.io/v1'),
    endpoints: on.map((node) => ({
      ...endpoint,
      zone: 'z',
      ...(node !== undefined && { nodeName: node }),
    })),
  }),
  'EndpointSlice v1beta1': (on) => ({
    ...slice('discovery.k8s.io/v1beta1'),
    endpoints: on.map((node) => ({
      ...endpoint,
      topology: {
        'topology.kubernetes.io/zone': 'z',
        ...(node !== undefined && { 'kubernetes.io/hostname': node }),
      },
    })),
  }),
  Endpoints: (on) => ({
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { name: 'web', namespace: 'default', resourceVersion: '1' },
    subsets:
      on.length === 0
        ? []
        : [
            {
              addresses: on.map((node) => ({
                ip: '10.244.1.2',
                ...(node !== undefined && { nodeName: node }),
              })),
              ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
            },
          ],
  }),
}

const endpoint = {
  addresses: ['10.244.1.2'],
  conditions: { ready: true },
  targetRef: { kind: 'Pod', namespace: 'default', name: 'web-1' },
  hints: { forZones: [{ name: 'z' }] },
}

const slice = (apiVersion: string): JsonObject => ({
  kind: 'EndpointSlice',
  apiVersion,
  metadata: {
    name: 'web-xyz',
    namespace: 'default',
    resourceVersion: '1',
    labels: { 'kubernetes.io/service-name': 'web' },
  },
  addressType: 'IPv4',
  ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
})

const node = 'kubernetes.io/hostname'
const inPool = ['openyurt.io/nodepool', 'kubernetes.io/zone']

for (const [kind, on] of Object.entries(kinds)) {
  void t.test(`by node, only endpoints of this node stay: ${kind}`, async (t) => {
    const filter = createdFilter(servicetopology, known(node))
    t.strictSame(filterResult(t, filter, on(nodes)), on(['node-1']))
    t.equal(filterResult(t, filter, on(['node-1'])), 'left')
    t.strictSame(filterResult(t, filter, on(['node-2', 'node-3'])), on([]), 'none on this node')
  })

  void t.test(`by pool, only endpoints of the pool’s nodes stay: ${kind}`, async (t) => {
    for (const topology of inPool) {
      const filter = createdFilter(servicetopology, known(topology))
      t.strictSame(filterResult(t, filter, on(nodes)), on(['node-1', 'node-3']), topology)
      t.equal(filterResult(t, filter, on(['node-3', 'node-1'])), 'left')
      t.strictSame(
        filterResult(t, filter, on(['node-2', 'no-such-node'])),
        on([]),
        'none in the pool',
      )
    }
  })

  void t.test(`endpoints of unknown nodes are removed: ${kind}`, async (t) => {
    for (const topology of [node, ...inPool]) {
      const filter = createdFilter(servicetopology, known(topology))
      t.strictSame(filterResult(t, filter, on([undefined, 'node-1'])), on(['node-1']), topology)
      t.strictSame(filterResult(t, filter, on([undefined])), on([]), topology)
    }
    const oddly = createdFilter(servicetopology, known(node, { nodeName: 'undefined' }))
    t.strictSame(filterResult(t, oddly, on([undefined])), on([]), 'whatever nodes are called')
  })

  void t.test(`an orphan node keeps its own only: ${kind}`, async (t) => {
    for (const topology of [node, ...inPool]) {
      const filter = createdFilter(
        servicetopology,
        known(topology, { pool: null, poolNodes: ['node-1'] }),
      )
      t.strictSame(filterResult(t, filter, on(nodes)), on(['node-1']), topology)
    }
  })

  void t.test(`without known pools, a node in none gets all endpoints: ${kind}`, async (t) => {
    for (const topology of inPool) {
      for (const inNone of [pool, null]) {
        const filter = createdFilter(
          servicetopology,
          known(topology, { pool: inNone, poolNodes: null }),
        )
        t.equal(filterResult(t, filter, on(nodes)), 'left', topology)
      }
    }
  })

  void t.test(`an empty pool has no endpoints: ${kind}`, async (t) => {
    for (const topology of inPool) {
      const filter = createdFilter(servicetopology, known(topology, { poolNodes: [] }))
      t.strictSame(filterResult(t, filter, on(nodes)), on([]), topology)
    }
  })

  void t.test(`without a topology all endpoints stay: ${kind}`, async (t) => {
    for (const topology of [undefined, '', 'kubernetes.io/region', 'openyurt.io/nodepool,']) {
      t.equal(
        filterResult(t, createdFilter(servicetopology, known(topology)), on(nodes)),
        'left',
        `${topology}`,
      )
    }
  })

  void t.test(`a service of the same name elsewhere is another: ${kind}`, async (t) => {
    const filter = createdFilter(
      servicetopology,
      known(undefined, { topologies: { 'other/web': node, web: node } }),
    )
    t.equal(filterResult(t, filter, on(nodes)), 'left')
  })
}

void t.test('a slice that names no service is left alone', async (t) => {
  const filter = createdFilter(servicetopology, known(node))
  for (const labels of [{}, { 'kubernetes.io/service-name': 'none' }]) {
    const web = kinds['EndpointSlice v1']?.(nodes) ?? {}
    const metadata = { ...(web['metadata'] as JsonObject), labels }
    t.equal(filterResult(t, filter, { ...web, metadata }), 'left')
  }
})

void t.test('unready addresses are filtered like ready ones', async (t) => {
  const [near, far] = [
    { ip: '10.244.1.2', nodeName: 'node-1' },
    { ip: '10.244.2.2', nodeName: 'node-2' },
  ]
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
  const endpoints = (...subsets: JsonObject[]): JsonObject => ({
    ...kinds['Endpoints']?.([]),
    subsets: subsets.map((subset) => ({ ...subset, ports })),
  })
  const filter = createdFilter(servicetopology, known(node))
  const before = endpoints(
    { addresses: [near, far], notReadyAddresses: [far] },
    { notReadyAddresses: [far, near] },
    { addresses: [far] },
  )
  const look = filterResult(t, filter, before)
  t.match(look, endpoints({ addresses: [near] }, { notReadyAddresses: [near] }))
  t.equal(((look as JsonObject)['subsets'] as unknown[]).length, 2)
})

void t.test('it awaits pools and topologies', async (t) => {
  t.strictSame(servicetopology.awaits, ['poolNodes', 'topologies'])
})

void t.test('a slice of the older version is read as Go writes it', async (t) => {
  // kubernetes/api discovery/v1beta1, generated.proto: endpoints = 2, addresses = 1, topology = 5,
  // nodeName = 6.
  const text = (number: number, value: string): Buffer => bytesField(number, Buffer.from(value))
  const entry = Buffer.concat([text(1, 'kubernetes.io/hostname'), text(2, 'node-2')])
  const far = Buffer.concat([text(1, '10.244.2.2'), bytesField(5, entry)])
  const near = Buffer.concat([text(1, '10.244.1.2'), text(6, 'node-1')])
  const beta = inBothEncodings(kinds['EndpointSlice v1beta1']?.([]) ?? {})
  const withBoth = Buffer.concat([beta.protobuf.bytes, bytesField(2, far), bytesField(2, near)])
  const filter = createdFilter(servicetopology, known(node))
  const look = filteredObject(filter, 'protobuf', beta.gvk, { ...beta.protobuf, bytes: withBoth })
  t.strictSame(
    Buffer.from(look?.bytes ?? []),
    Buffer.concat([beta.protobuf.bytes, bytesField(2, near)]),
  )
})

void t.test('filtering is linear in a slice’s length', async (t) => {
  // Once for each endpoint would take hours.
  const count = 50_000
  const on = Array.from({ length: count }, (_, at) => (at % 2 === 0 ? 'node-1' : 'node-2'))
  const filter = createdFilter(servicetopology, known(node))
  for (const kind of ['EndpointSlice v1', 'Endpoints']) {
    const both = inBothEncodings(kinds[kind]?.(on) ?? {})
    for (const encoding of ['json', 'protobuf'] as const) {
      const look = filteredObject(filter, encoding, both.gvk, both[encoding])
      if (!look) throw new Error('withheld')
      const cursor = cursorOf(encoding, both.gvk, look)
      const list = kind === 'Endpoints' ? ['subsets', 0, 'addresses'] : ['endpoints']
      t.equal(cursor.count(list), count / 2, `${kind} in ${encoding}`)
    }
  }
})
