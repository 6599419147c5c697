import t from 'tap'
import { forwardkubesvctraffic } from '../../filters/forwardkubesvctraffic.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { inputsOf } from '../kit/inputs.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const filter = createdFilter(forwardkubesvctraffic, {
  hubAddress: { host: '169.254.2.1', port: 10268, forService: true },
})

const slice = (changes: JsonObject = {}, named: JsonObject = {}): JsonObject => ({
  kind: 'EndpointSlice',
  apiVersion: 'discovery.k8s.io/v1',
  metadata: {
    name: 'kubernetes',
    namespace: 'default',
    resourceVersion: '1',
    labels: { 'kubernetes.io/service-name': 'kubernetes' },
    ...named,
  },
  addressType: 'IPv4',
  endpoints: [
    { addresses: ['192.168.0.1'], conditions: { ready: true } },
    { addresses: ['192.168.0.2'], conditions: { ready: false, serving: true } },
  ],
  ports: [
    { name: 'https', protocol: 'TCP', port: 6443 },
    { name: 'other', protocol: 'TCP', port: 1 },
  ],
  ...changes,
})

const shown = {
  endpoints: [{ addresses: ['169.254.2.1'], conditions: { ready: true } }],
  ports: [
    { name: 'https', protocol: 'TCP', port: 10268 },
    { name: 'other', protocol: 'TCP', port: 1 },
  ],
}

void t.test('the slice of the service kubernetes leads to the hub alone', async (t) => {
  t.strictSame(filterResult(t, filter, slice()), slice(shown))
  t.equal(filterResult(t, filter, slice(shown)), 'left', 'a second time changes nothing')
  const beta = { apiVersion: 'discovery.k8s.io/v1beta1' }
  t.strictSame(filterResult(t, filter, slice(beta)), slice({ ...beta, ...shown }))
})

void t.test('other slices are left alone', async (t) => {
  t.equal(filterResult(t, filter, slice({}, { name: 'kubernetes-1' })), 'left')
  t.equal(filterResult(t, filter, slice({}, { namespace: 'kube-system' })), 'left')
})

void t.test('addresses of the other family go on leading to the cloud', async (t) => {
  const v6 = { addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'], conditions: {} }] }
  t.equal(filterResult(t, filter, slice(v6)), 'left')
  const at6 = createdFilter(forwardkubesvctraffic, {
    hubAddress: { host: 'fd00::9', port: 10268, forService: true },
  })
  t.equal(filterResult(t, at6, slice()), 'left')
  t.strictSame(
    filterResult(t, at6, slice(v6)),
    slice({
      ...v6,
      ...shown,
      endpoints: [{ addresses: ['fd00::9'], conditions: { ready: true } }],
    }),
  )
})

void t.test(
  'while the hub’s certificate does not name the ClusterIPs the filter is off',
  async (t) => {
    const hubAddress = { host: '169.254.2.1', port: 10268, forService: false }
    t.equal(
      forwardkubesvctraffic.create(inputsOf({ hubAddress }), () => undefined),
      undefined,
    )
  },
)

void t.test('without an IP address of the hub the filter is off', async (t) => {
  const said: string[] = []
  const warn = (line: string): void => void said.push(line)
  t.equal(forwardkubesvctraffic.create(inputsOf(), warn), undefined)
  const named = { hubAddress: { host: 'hub.example', port: 10268, forService: true } }
  t.equal(forwardkubesvctraffic.create(inputsOf(named), warn), undefined)
  t.match(said, [/^forwardkubesvctraffic: .*hub\.example is no IP address/])
})
