import t from 'tap'
import { type Arm, arms } from '../../../bench/host-network/arms.ts'
import { modelled } from '../../../bench/host-network/model.ts'
import { remarksOf, textOf } from '../../../bench/host-network/outcome.ts'
import { type Workload, workloads } from '../../../bench/host-network/workloads.ts'

const [all, two, shut] = ['3 Serving', '2 Serving', '3 Unschedulable']
const stuck = '3 Stuck'
const waiting = '2 Serving, 1 Unschedulable'
const crashing = '2 Serving, 1 CrashLoop'
const unserved = '2 Serving, 1 NotServing (1 Ready without serving)'
const changed = "3 Serving (3 changed the node's network)"
const rebooted = '3 Serving (3 served without a link)'
const updated = '2 Serving (2 of the new template)'

/** By the node that the scheduler chooses, with what an update in place ends. */
const halfUpdated = [
  '1 Serving, 1 CrashLoop (1 of the new template)',
  updated,
  '1 Serving, 1 CrashLoop',
].join(' or ')

/**
 * By workload: on standard nodes; under legacy, plain, excluded, explicit and admission on nodes of
 * the pool without a pod network; and under legacy and plain on such with a CNI plugin, where it
 * makes no difference to the others.
 */
const expected: Readonly<Record<string, readonly (readonly (string | undefined)[])[]>> = {
  'same-port': [[all], [crashing, stuck, shut, waiting, waiting], [crashing, all]],
  'distinct-ports': [[all], [all, stuck, shut, all, all], [all, all]],
  'undeclared-port': [[all], [crashing, stuck, shut, crashing, crashing], [crashing, all]],
  patient: [[all], [unserved, stuck, shut, unserved, unserved], [unserved, all]],
  'probed-port': [[all], [unserved, stuck, shut, unserved, unserved], [unserved, all]],
  'reused-port': [
    [all],
    ['1 Serving, 2 Shared', stuck, shut, waiting, waiting],
    ['1 Serving, 2 Shared', all],
  ],
  'daemon-set': [[two], [two, '2 Stuck', '2 Unschedulable', two, two], [two, two]],
  'rolling-update': [[updated], [crashing, stuck, shut, waiting, waiting], [crashing, updated]],
  'update-in-place': [
    [updated],
    [halfUpdated, '2 Stuck', '2 Unschedulable', updated, updated],
    [halfUpdated, updated],
  ],
  'holder-ends': [[two], [two, '2 Stuck', '2 Unschedulable', two, two], [two, two]],
  baseline: [[all], [all, stuck, shut, '3 Refused', '3 Refused'], [all, all]],
  'net-admin': [[all], [changed, stuck, shut, changed, changed], [changed, all]],
  'mixed-pools': [[all], [all, '1 Serving, 2 Stuck', all, all, waiting], [all, all]],
  'offline-reboot': [[rebooted], [rebooted, stuck, shut, rebooted, rebooted], [rebooted, rebooted]],
  'switched-off': [[all], ['2 Serving, 1 Stuck', stuck, shut, all, all], [all, all]],
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
      [...standard, ...without, ...withPlugin, ...without.slice(2)],
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
      const { misrepresented } = modelled(arm, workload)
      if (arm.propagation === 'off') t.equal(misrepresented, 0, `${arm.name}, ${workload.name}`)
    }
  }
  const of = (arm: string, workload: string): number =>
    modelled(armNamed(arm), workloadNamed(workload)).misrepresented
  t.equal(of('legacy', 'same-port'), 3, 'one that crashes, too')
  t.equal(of('legacy-cni', 'switched-off'), 2, 'what ran goes on as it was')
  t.equal(of('legacy', 'mixed-pools'), 2, 'not on a node of no pool')
})

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
