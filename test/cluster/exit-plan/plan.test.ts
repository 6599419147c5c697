import t from 'tap'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt } from '../../../src/api/kube/json-at.ts'
import { hostNetworkLabel } from '../../../src/api/kube/node-pool.ts'
import { poolNameLabel } from '../../../src/cluster/admission/propagation.ts'
import type { ClusterState } from '../../../src/cluster/exit-plan/cluster-state.ts'
import type { Owner } from '../../../src/cluster/exit-plan/owner.ts'
import { planOf } from '../../../src/cluster/exit-plan/plan.ts'
import { contextOf } from '../../../src/node/lint/context.ts'

const ports = [{ containerPort: 80 }]

/** An owner with a propagated pod on each of so many nodes, in a pool each where they are named. */
function ownerOf(
  kind: string,
  name: string,
  {
    spec,
    podSpec,
    pools = ['', '', ''],
  }: { spec?: JsonObject; podSpec?: JsonObject; pools?: string[] },
): Owner {
  const template = {
    metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'main', ports }], ...podSpec },
  }
  const its = { replicas: pools.length, template, ...spec }
  const isSet = kind === 'YurtAppSet'
  const workload = { workloadTemplate: { deploymentTemplate: { spec: its } } }
  const apiVersion = isSet ? 'apps.openyurt.io/v1beta1' : 'apps/v1'
  return {
    apiVersion,
    kind,
    namespace: 'shop',
    name,
    uid: name,
    object: { apiVersion, kind, metadata: { name }, spec: isSet ? { workload } : its },
    pods: pools.map((pool, at) => ({
      namespace: 'shop',
      name: `${name}-${at}`,
      uid: `${name}-${at}`,
      node: `edge-${at}`,
      labels: { app: name, ...(pool && { [poolNameLabel]: pool }) },
      controller: undefined,
      propagated: true,
      hostNetwork: false,
      ended: false,
    })),
  }
}

const labels = { [hostNetworkLabel]: 'true' }

/** Three nodes of a pool; each owner is covered by a disruption budget that is used up. */
const stateOf = (owners: readonly Owner[]): ClusterState => ({
  nodes: [0, 1, 2].map((at) => ({ name: `edge-${at}`, labels, taints: [] })),
  pods: owners.flatMap(({ pods }) => pods),
  budgets: owners.map(({ name }) => ({
    namespace: 'shop',
    name,
    selector: { matchLabels: { app: name } },
    allowed: 0,
  })),
  context: contextOf([]),
})

function planned(owners: readonly Owner[], keepOff: readonly string[] = []) {
  return planOf(stateOf(owners), owners, { mixed: 'ask', keepOff })
}

void t.test('a disruption budget has every rollout replace one pod at a time', async (t) => {
  const rolling = (member: string, rollingUpdate: JsonObject): JsonObject => ({
    [member]: { type: 'RollingUpdate', rollingUpdate },
  })
  const rolloutOf = (owner: Owner, keepOff: readonly string[] = []) => {
    const [step] = planned([owner], keepOff)
    const budgetNote = step?.notes.find((note) => note.startsWith('disruption budget'))
    const its = ['strategy', 'updateStrategy'].map((member) =>
      valueAt(step?.patch?.after, 'spec', member, 'rollingUpdate', 'maxUnavailable'),
    )
    return [its.find((each) => each !== undefined), /one pod at a time/.test(budgetNote ?? '')]
  }
  for (const maxUnavailable of ['100%', '67%', 3, 1]) {
    const daemonSet = ownerOf('DaemonSet', 'agent', {
      spec: rolling('updateStrategy', { maxUnavailable }),
    })
    t.strictSame(rolloutOf(daemonSet), [1, true], `DaemonSet, ${maxUnavailable}`)
    const statefulSet = ownerOf('StatefulSet', 'db', {
      spec: rolling('updateStrategy', { maxUnavailable }),
    })
    t.strictSame(rolloutOf(statefulSet), [1, true], `StatefulSet, ${maxUnavailable}`)
    const strategy = rolling('strategy', { maxSurge: 0, maxUnavailable })
    const portless = ownerOf('Deployment', 'job', {
      spec: { ...strategy, replicas: 4 },
      podSpec: { containers: [{ name: 'main' }] },
    })
    t.strictSame(rolloutOf(portless), [1, true], `Deployment without ports, ${maxUnavailable}`)
    const web = ownerOf('Deployment', 'web', { spec: strategy })
    t.strictSame(rolloutOf(web), [1, true], `Deployment, ${maxUnavailable}`)
    t.strictSame(rolloutOf(web, ['shop/web']), [1, true], `kept off, ${maxUnavailable}`)
  }
  const surges = ownerOf('Deployment', 'web', {
    spec: rolling('strategy', { maxSurge: 1, maxUnavailable: '25%' }),
  })
  t.strictSame(rolloutOf(surges, ['shop/web']), ['25%', true], 'that is none of three')
  const recreated = ownerOf('Deployment', 'web', { spec: { strategy: { type: 'Recreate' } } })
  t.strictSame(rolloutOf(recreated), [undefined, false], 'it has all of them away')
  const agent = ownerOf('DaemonSet', 'agent', {})
  t.strictSame(rolloutOf(agent), [undefined, true])
  t.strictSame(rolloutOf(agent, ['shop/agent']), [undefined, false], 'they are deleted at once')
})

void t.test('owners with a gap come after those that keep a pod serving', async (t) => {
  const owners = [
    ownerOf('Deployment', 'a-recreated', { spec: { strategy: { type: 'Recreate' } } }),
    ownerOf('YurtAppSet', 'b-one-in-each-pool', { pools: ['north', 'south', 'west'] }),
    ownerOf('DaemonSet', 'c-one-node', { pools: [''] }),
    ownerOf('Deployment', 'd-rolling', {}),
    ownerOf('YurtAppSet', 'e-two-in-a-pool', { pools: ['north', 'north'] }),
  ]
  t.strictSame(
    planned(owners).map(({ owner }) => owner.name),
    ['d-rolling', 'e-two-in-a-pool', 'a-recreated', 'b-one-in-each-pool', 'c-one-node'],
  )
})
