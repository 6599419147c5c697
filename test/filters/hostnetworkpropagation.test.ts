import t from 'tap'
import { hostnetworkpropagation } from '../../filters/hostnetworkpropagation.ts'
import { cursorOf } from '../../src/api/codec/cursor.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { Filter } from '../../src/hub/filter/filter.ts'
import type { Inputs, PoolFacts } from '../../src/hub/filter/inputs.ts'
import { createdFilter, filteredObject, inBothEncodings } from '../kit/filter-result.ts'
import { filtersOf } from '../kit/inputs.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }

const pool = (hostNetwork: boolean | undefined): PoolFacts => ({
  name: 'pool-1',
  type: 'Edge',
  hostNetwork,
  labels: {},
  annotations: {},
})

type Known = Partial<Pick<Inputs, 'propagation' | 'pool'>>
type PodParts = Readonly<Partial<Record<'metadata' | 'spec' | 'status', JsonObject>>>

/** A pod of node-1 as an API server sends it. */
const podOf = ({ metadata, spec, status }: PodParts): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'default', uid: 'a', resourceVersion: '7', ...metadata },
  spec: { nodeName: 'node-1', containers: [{ name: 'main', image: 'main' }], ...spec },
  status: { phase: 'Pending', ...status },
})

const filterOf = (known: Known): Filter =>
  createdFilter(hostnetworkpropagation(known.propagation ?? 'off'), known)

/**
 * What a kubelet says first of a pod on the host's network, of one on the pod network, and later of
 * the latter.
 */
const host = { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.1' }] }
const onHost = { ...host, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] }
const onPodNetwork = { ...host, podIP: '10.244.0.7', podIPs: [{ ip: '10.244.0.7' }] }

for (const encoding of ['json', 'protobuf'] as const) {
  const shown = (known: Known, parts: PodParts = {}, filter = filterOf(known)): string => {
    const { gvk, [encoding]: object } = inBothEncodings(podOf(parts))
    const look = filteredObject(filter, encoding, gvk, object)
    if (look === undefined) return 'withheld'
    const isPropagated = cursorOf(encoding, gvk, look).value(['spec', 'hostNetwork']) === true
    return look === object ? 'left' : isPropagated ? 'propagated' : 'edited otherwise'
  }
  const hostPool = { propagation: 'on', pool: pool(true) } as const

  void t.test(`the cases of OpenYurt 1.4: ${encoding}`, async (t) => {
    for (const [what, known, parts, look] of [
      ['a pod with hostNetwork: true', hostPool, { spec: { hostNetwork: true } }, 'left'],
      ['in a pool with hostNetwork', hostPool, {}, 'propagated'],
      ['in a pool without hostNetwork', { propagation: 'on', pool: pool(false) }, {}, 'left'],
      ['on a node in no pool', { propagation: 'on', pool: null }, {}, 'left'],
      ['a pod of another node', hostPool, { spec: { nodeName: 'node-2' } }, 'left'],
    ] as const)
      t.equal(shown(known, parts), look, what)
  })

  void t.test(`mirrors of static pods are left alone: ${encoding}`, async (t) => {
    const annotations = { 'kubernetes.io/config.mirror': 'x' }
    t.equal(shown(hostPool, { metadata: { annotations } }), 'left')
  })

  void t.test(`of a pod that runs the status decides, in every mode: ${encoding}`, async (t) => {
    for (const propagation of ['off', 'on'] as const) {
      for (const kind of [pool(true), pool(false), null, undefined]) {
        const known = { propagation, pool: kind }
        t.equal(shown(known, { status: onHost }), 'propagated', 'its address is the host’s')
        t.equal(shown(known, { status: onPodNetwork }), 'left', 'it has an address of its own')
        t.equal(shown(known, { status: host }), 'left', 'the host is named, and it has none yet')
      }
    }
    const hostIPs = [{ ip: '10.0.0.9' }, { ip: '10.0.0.1' }]
    const second = { ...onHost, hostIP: '10.0.0.9', hostIPs }
    t.equal(shown({}, { status: second }), 'propagated', 'any of the host’s addresses')
    const filter = filterOf({})
    t.equal(shown({}, {}, filter), 'left', 'a new one is left')
    const started = { status: onHost, metadata: { resourceVersion: '8' } }
    t.equal(shown({}, started, filter), 'propagated', 'until its status says otherwise')
  })

  void t.test(`an unreadable pod passes: ${encoding}`, async (t) => {
    const failed: string[] = []
    const filters = filtersOf([hostnetworkpropagation('on')], hostPool, (name) => failed.push(name))
    const { gvk, [encoding]: whole } = inBothEncodings(podOf({}))
    const torn = { ...whole, bytes: whole.bytes.subarray(0, -9) }
    t.equal(filters.chainFor('kubelet', pods, 'list')?.apply(gvk, encoding, torn), torn)
    t.strictSame(failed, ['hostnetworkpropagation'])
  })
}

void t.test('it applies to the kubelet’s pods, read and written, and nothing else', async (t) => {
  const filters = filtersOf([hostnetworkpropagation('off')])
  for (const verb of ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const) {
    t.ok(filters.chainFor('kubelet', pods, verb), verb)
  }
  t.notOk(filters.chainFor('kubelet', { ...pods, resource: 'services' }, 'list'))
  t.notOk(filters.chainFor('kube-proxy', pods, 'list'))
})
