import type { Target } from '../load/target.ts'
import { createAll, pod } from './seed.ts'

/** The node of the hub that filters: its pods are its own, so that no other row sees them. */
export const filteringNode = 'filtering-1'

/** What filters are measured on. */
export type FilteredKind = 'endpointslices' | 'pods'

/** Few, for what has to be compiled first. */
export const warmCount = 100

const namespaceOf = (kind: FilteredKind, count: number): string => `filtered-${kind}-${count}`

const groupOf: Readonly<Record<FilteredKind, string>> = {
  endpointslices: '/apis/discovery.k8s.io/v1',
  pods: '/api/v1',
}

const collection = (kind: FilteredKind, count: number): string =>
  `${groupOf[kind]}/namespaces/${namespaceOf(kind, count)}/${kind}`

/** Where they are listed, as a reflector does. */
export const filteredPath = (kind: FilteredKind, count: number): string =>
  `${collection(kind, count)}?resourceVersion=0`

/** Each of the first so many. */
export const filteredObjects = (
  kind: FilteredKind,
  count: number,
  most: number,
): readonly string[] =>
  Array.from({ length: most }, (_, at) => `${collection(kind, count)}/filtered-${at}`)

/** API server and namespace. */
const seeded = new Set<string>()

/** Makes so many, once for each API server. */
export async function seedFiltered(
  admin: Target,
  kind: FilteredKind,
  count: number,
): Promise<void> {
  const namespace = namespaceOf(kind, count)
  const [mark, node] = [`${admin.url} ${namespace}`, `${admin.url} node`]
  if (seeded.has(mark)) return
  seeded.add(mark)
  if (!seeded.has(node)) {
    seeded.add(node)
    const labels = {
      'apps.openyurt.io/nodepool': 'filtering',
      'nodepool.openyurt.io/hostnetwork': 'true',
    }
    await createAll(admin, [['/api/v1/nodes', { metadata: { name: filteringNode, labels } }]])
  }
  await createAll(admin, [['/api/v1/namespaces', { metadata: { name: namespace } }]])
  await createAll(admin, besides(kind, namespace))
  await createAll(
    admin,
    Array.from({ length: count }, (_, at) => [collection(kind, count), objects[kind](at)]),
  )
}

/** What has to be there for them to be what they are. */
function besides(kind: FilteredKind, namespace: string): readonly (readonly [string, object])[] {
  const core = `/api/v1/namespaces/${namespace}`
  if (kind === 'pods') return [[`${core}/serviceaccounts`, { metadata: { name: 'default' } }]]
  const annotations = { 'openyurt.io/topologyKeys': 'kubernetes.io/hostname' }
  const spec = { clusterIP: 'None', ports: [{ port: 80 }] }
  return [[`${core}/services`, { metadata: { name: 'near', annotations }, spec }]]
}

const objects: Readonly<Record<FilteredKind, (at: number) => object>> = {
  // Of every other one only what is on this node is to be shown: two of ten.
  endpointslices: (at) => ({
    metadata: {
      name: `filtered-${at}`,
      labels: { 'kubernetes.io/service-name': at % 2 === 0 ? 'near' : 'far' },
    },
    addressType: 'IPv4',
    endpoints: Array.from({ length: 10 }, (_, n) => ({
      addresses: [`10.${at >> 8}.${at & 255}.${n + 1}`],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: n % 5 === 0 ? filteringNode : `node-${n}`,
      targetRef: { kind: 'Pod', namespace: 'default', name: `pod-${at}-${n}` },
    })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  }),
  // Each is shown on the host's network.
  pods: (at) => pod(`filtered-${at}`, at, filteringNode),
}
