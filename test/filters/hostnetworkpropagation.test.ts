import t from 'tap'
import { hostnetworkpropagation } from '../../filters/hostnetworkpropagation.ts'
import type { Inputs, PoolFacts } from '../../src/hub/filter/inputs.ts'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { filtersOf } from '../kit/inputs.ts'
import { podCursor, podKind, podObject, statuses, type PodParts } from '../kit/pods.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }

const pool = (hostNetwork: boolean | undefined): PoolFacts => ({
  name: 'pool-1',
  type: 'Edge',
  hostNetwork,
  labels: {},
  annotations: {},
})

type Known = Partial<Pick<Inputs, 'propagation' | 'pool'>>

/** The filter as a hub has it. */
function filterOf(known: Known) {
  const filters = filtersOf(
    [hostnetworkpropagation(known.propagation ?? 'off')],
    known,
    (name, cause) => t.fail(`${name} failed`, { cause }),
  )
  const chain = filters.chainFor('kubelet', pods, 'list')
  if (!chain) throw new Error('it stands for nothing')
  return { chain, filters }
}

for (const encoding of ['json', 'protobuf'] as const) {
  const isPropagated = (object: ApiObject | undefined): boolean =>
    object !== undefined && podCursor(encoding, object).value(['spec', 'hostNetwork']) === true

  const shown = (known: Known, parts: PodParts = {}) => {
    const { chain } = filterOf(known)
    const object = podObject(encoding, 'a', parts)
    const look = chain.apply(podKind, encoding, object)
    return { look, object, propagated: isPropagated(look) }
  }

  void t.test(`the cases of OpenYurt 1.4: ${encoding}`, async (t) => {
    const hostPool = { propagation: 'on', pool: pool(true) } as const
    const podPool = { propagation: 'on', pool: pool(false) } as const

    await t.test('a pod with hostNetwork: true is left alone', async (t) => {
      const { look, object } = shown(hostPool, { spec: { hostNetwork: true } })
      t.equal(look, object)
    })

    await t.test('in a pool with hostNetwork a pod gets hostNetwork: true', async (t) => {
      t.ok(shown(hostPool).propagated)
    })

    await t.test('in a pool without hostNetwork it is left alone', async (t) => {
      const { look, object } = shown(podPool)
      t.equal(look, object)
    })

    await t.test('on a node in no pool it is left alone', async (t) => {
      const { look, object } = shown({ propagation: 'on', pool: null })
      t.equal(look, object)
    })

    await t.test('a pod of another node is left alone', async (t) => {
      const { look, object } = shown(hostPool, { spec: { nodeName: 'node-2' } })
      t.equal(look, object)
    })
  })

  void t.test(`mirrors of static pods are left alone: ${encoding}`, async (t) => {
    const annotations = { 'kubernetes.io/config.mirror': 'x' }
    const { look, object } = shown(
      { propagation: 'on', pool: pool(true) },
      { metadata: { annotations } },
    )
    t.equal(look, object)
  })

  void t.test(`of a pod that runs the status decides, in every mode: ${encoding}`, async (t) => {
    for (const propagation of ['off', 'on'] as const) {
      for (const kind of [pool(true), pool(false), null, undefined]) {
        const known = { propagation, pool: kind }
        const onHost = shown(known, { status: statuses.onHost })
        t.ok(onHost.propagated, 'its address is the host’s')
        const elsewhere = shown(known, { status: statuses.onPodNetwork })
        t.equal(elsewhere.look, elsewhere.object, 'it has an address of its own')
        const early = shown(known, { status: statuses.beingMade })
        t.equal(early.look, early.object, 'the host is named, and it has no address yet')
      }
    }
    const second = {
      ...statuses.onHost,
      hostIP: '10.0.0.9',
      hostIPs: [{ ip: '10.0.0.9' }, { ip: '10.0.0.1' }],
    }
    t.ok(shown({}, { status: second }).propagated, 'any of the host’s addresses')
    const { chain } = filterOf({})
    const applied = (parts: PodParts): ApiObject | undefined =>
      chain.apply(podKind, encoding, podObject(encoding, 'a', parts))
    t.notOk(isPropagated(applied({})), 'a new one is left')
    const started = { status: statuses.onHost, metadata: { resourceVersion: '8' } }
    t.ok(isPropagated(applied(started)), 'until its status says otherwise')
  })

  void t.test(`an unreadable pod passes: ${encoding}`, async (t) => {
    const failures: string[] = []
    const known = { propagation: 'on', pool: pool(true) } as const
    const filters = filtersOf([hostnetworkpropagation('on')], known, (name) => failures.push(name))
    const chain = filters.chainFor('kubelet', pods, 'list')
    const whole = podObject(encoding, 'a')
    const torn = { ...whole, bytes: whole.bytes.subarray(0, whole.bytes.length - 9) }
    t.equal(chain?.apply(podKind, encoding, torn), torn)
    t.strictSame(failures, ['hostnetworkpropagation'])
  })
}

void t.test('it applies to the kubelet’s pods, read and written, and nothing else', async (t) => {
  const { filters } = filterOf({})
  for (const verb of ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const) {
    t.ok(filters.chainFor('kubelet', pods, verb), verb)
  }
  t.notOk(filters.chainFor('kubelet', { ...pods, resource: 'services' }, 'list'))
  t.notOk(filters.chainFor('kube-proxy', pods, 'list'))
})
