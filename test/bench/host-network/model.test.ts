import t from 'tap'
import { type Arm, arms } from '../../../bench/host-network/arms.ts'
import { modelled } from '../../../bench/host-network/model.ts'
import { remarksOf, textOf } from '../../../bench/host-network/outcome.ts'
import { type Workload, workloads } from '../../../bench/host-network/workloads.ts'

const [all, two, shut] = ['3 Serving', '2 Serving', '3 Unschedulable']
const stuck = ['3 Stuck', '2 Serving, 1 Stuck']
const waiting = '2 Serving, 1 Unschedulable'
const crashing = '2 Serving, 1 CrashLoop'
const unserved = '2 Serving, 1 NotServing (1 Ready without serving)'
const changed = "3 Serving (3 changed the node's network)"
const rebooted = '3 Serving (3 served without a link)'
const updated = '2 Serving (2 of the new template)'

/** By the node that the scheduler chooses, with what an update in place ends. */
const halfUpdated = (end: string): string =>
  [`1 Serving, 1 ${end} (1 of the new template)`, updated, `1 Serving, 1 ${end}`].join(' or ')

/**
 * By workload: on standard nodes; under legacy, guarded, plain, excluded, explicit and admission on
 * nodes of the pool without a pod network; and under legacy, guarded and plain on such with a CNI
 * plugin, where it makes no difference to the others.
 */
const expected: Readonly<Record<string, readonly (readonly (string | undefined)[])[]>> = {
  'same-port': [
    [all],
    [crashing, stuck[1], stuck[0], shut, waiting, waiting],
    [crashing, all, all],
  ],
  'distinct-ports': [[all], [all, all, stuck[0], shut, all, all], [all, all, all]],
  'undeclared-port': [
    [all],
    [crashing, crashing, stuck[0], shut, crashing, crashing],
    [crashing, crashing, all],
  ],
  patient: [
    [all],
    [unserved, unserved, stuck[0], shut, unserved, unserved],
    [unserved, unserved, all],
  ],
  'probed-port': [
    [all],
    [unserved, stuck[1], stuck[0], shut, unserved, unserved],
    [unserved, all, all],
  ],
  'reused-port': [
    [all],
    ['1 Serving, 2 Shared', stuck[1], stuck[0], shut, waiting, waiting],
    ['1 Serving, 2 Shared', all, all],
  ],
  'daemon-set': [[two], [two, two, '2 Stuck', '2 Unschedulable', two, two], [two, two, two]],
  'rolling-update': [
    [updated],
    [crashing, stuck[1], stuck[0], shut, waiting, waiting],
    [crashing, updated, updated],
  ],
  'update-in-place': [
    [updated],
    [
      halfUpdated('CrashLoop'),
      halfUpdated('Stuck'),
      '2 Stuck',
      '2 Unschedulable',
      updated,
      updated,
    ],
    [halfUpdated('CrashLoop'), updated, updated],
  ],
  'holder-ends': [[two], [two, two, '2 Stuck', '2 Unschedulable', two, two], [two, two, two]],
  baseline: [[all], [all, all, stuck[0], shut, '3 Refused', '3 Refused'], [all, all, all]],
  'net-admin': [[all], [changed, stuck[0], stuck[0], shut, changed, changed], [changed, all, all]],
  'mixed-pools': [[all], [all, all, '1 Serving, 2 Stuck', all, all, waiting], [all, all, all]],
  'offline-reboot': [
    [rebooted],
    [rebooted, rebooted, stuck[0], shut, rebooted, rebooted],
    [rebooted, rebooted, rebooted],
  ],
  'switched-off': [[all], [stuck[1], stuck[1], stuck[0], shut, all, all], [all, all, all]],
}

const said = (arm: Arm, workload: Workload): string => {
  const { others = [], ...first } = modelled(arm, workload)
  return [first, ...others]
    .map((result) => [textOf(result), remarksOf(result)])
    .map(([outcome = '', remarks]) => (remarks ? `${outcome} (${remarks})` : outcome))
    .join(' or ')
}

for (const workload of workloads) {
  void t.test(`${workload.title}: the outcome follows from the rules`, async (t) => {
    const [standard = [], without = [], withPlugin = []] = expected[workload.name] ?? []
    t.strictSame(
      arms.filter(({ hub }) => hub === 'nodehub').map((arm) => said(arm, workload)),
      [...standard, ...without, ...withPlugin, ...without.slice(3)],
    )
  })
}

const armNamed = (name: string): Arm => {
  const arm = arms.find((each) => each.name === name)
  if (!arm) throw new Error(`no arm ${name}`)
  return arm
}

const workloadNamed = (name: string): Workload => {
  const workload = workloads.find((each) => each.name === name)
  if (!workload) throw new Error(`no workload ${name}`)
  return workload
}

void t.test('the API misrepresents only propagated pods', async (t) => {
  for (const arm of arms) {
    for (const workload of workloads) {
      const { misrepresented, moreMisrepresented } = modelled(arm, workload)
      if (arm.propagation === 'off')
        t.equal(misrepresented + moreMisrepresented, 0, `${arm.name}, ${workload.name}`)
    }
  }
  const of = (arm: string, workload: string): number =>
    modelled(armNamed(arm), workloadNamed(workload)).misrepresented
  t.equal(of('legacy', 'same-port'), 3, 'one that crashes, too')
  t.equal(of('guarded', 'same-port'), 2)
  t.equal(of('guarded-cni', 'same-port'), 2, 'the refused one has a network of its own')
  t.equal(of('legacy-cni', 'switched-off'), 2, 'what ran goes on as it was')
  t.equal(of('legacy', 'mixed-pools'), 2, 'not on a node of no pool')
})

void t.test(
  'on nodes with a CNI plugin the network of updated pods depends on order',
  async (t) => {
    const { misrepresented, moreMisrepresented } = modelled(
      armNamed('guarded-cni'),
      workloadNamed('rolling-update'),
    )
    t.strictSame([misrepresented, moreMisrepresented], [0, 1])
  },
)

void t.test('clients of the API see a pod’s phase and its requested network', async (t) => {
  const of = (arm: string, workload: string): unknown =>
    modelled(armNamed(arm), workloadNamed(workload)).said
  t.strictSame(of('legacy', 'same-port'), { 'Running on the pod network': 3 })
  t.strictSame(of('plain', 'same-port'), { 'Pending on the pod network': 3 })
  t.strictSame(of('admission', 'same-port'), {
    "Running on the host's network": 2,
    "Pending on the host's network": 1,
  })
  t.strictSame(of('explicit', 'baseline'), {}, 'there is none to read of')
})
