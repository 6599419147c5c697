import { readFileSync } from 'node:fs'
import t from 'tap'
import { allFilters, builtInFilters } from '../../filters/index.ts'
import { filterNames } from '../../src/config/filter-names.ts'
import { filtersOf } from '../kit/inputs.ts'
import { inBothEncodings, plain } from '../kit/filter-result.ts'

const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }

void t.test('every filter has its name in flags and its place in the README', async (t) => {
  const names = allFilters('on').map(({ name }) => name)
  t.strictSame([...filterNames].toSorted(), names.toSorted())
  const table = readFileSync('filters/README.md', 'utf8').matchAll(/^\| `([a-z0-9-]+)`/gm)
  t.strictSame(new Set([...table].map(([, name]) => name)), new Set(names))
})

void t.test('the hub’s own endpoint stays, whatever the topology of the service', async (t) => {
  const filters = filtersOf(
    builtInFilters,
    {
      nodeName: 'node-1',
      pool: null,
      poolNodes: [],
      topologies: { 'default/kubernetes': 'kubernetes.io/hostname' },
      hubAddress: { host: '169.254.2.1', port: 10268, forService: true },
    },
    (name, cause) => t.fail(`${name} failed`, { cause }),
  )
  const { gvk, json } = inBothEncodings({
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      resourceVersion: '1',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  })
  const look = filters.chainFor('kube-proxy', slices, 'list')?.apply(gvk, 'json', json)
  t.match(look && plain('json', gvk, look), { endpoints: [{ addresses: ['169.254.2.1'] }] })
})
