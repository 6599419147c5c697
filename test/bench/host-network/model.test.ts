import t from 'tap'
import { arms } from '../../../bench/host-network/arms.ts'
import { modelled } from '../../../bench/host-network/model.ts'
import { textOf } from '../../../bench/host-network/outcome.ts'
import { modelRows } from '../../../bench/host-network/table.ts'
import { workloads } from '../../../bench/host-network/workloads.ts'

/** By workload, what becomes of the pods under each arm, in their order. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'same-port': [
    '3 Serving',
    '2 Serving, 1 CrashLoop',
    '3 Stuck',
    '3 Unschedulable',
    '2 Serving, 1 Unschedulable',
    '2 Serving, 1 Unschedulable',
  ],
  'distinct-ports': [
    '3 Serving',
    '3 Serving',
    '3 Stuck',
    '3 Unschedulable',
    '3 Serving',
    '3 Serving',
  ],
  'undeclared-port': [
    '3 Serving',
    '2 Serving, 1 CrashLoop',
    '3 Stuck',
    '3 Unschedulable',
    '2 Serving, 1 CrashLoop',
    '2 Serving, 1 CrashLoop',
  ],
  patient: [
    '3 Serving',
    '2 Serving, 1 NotServing',
    '3 Stuck',
    '3 Unschedulable',
    '2 Serving, 1 NotServing',
    '2 Serving, 1 NotServing',
  ],
  'daemon-set': ['2 Serving', '2 Serving', '2 Stuck', '2 Unschedulable', '2 Serving', '2 Serving'],
  'holder-ends': ['2 Serving', '2 Serving', '2 Stuck', '2 Unschedulable', '2 Serving', '2 Serving'],
}

for (const workload of workloads) {
  void t.test(`${workload.title}: what becomes of them follows from the rules`, async (t) => {
    t.strictSame(
      arms.map((arm) => textOf(modelled(arm, workload))),
      expected[workload.name],
    )
  })
}

void t.test(
  'the API misrepresents what runs under the legacy filter, and nowhere else',
  async (t) => {
    for (const arm of arms) {
      for (const workload of workloads) {
        const { counts, misrepresented } = modelled(arm, workload)
        const { Serving = 0, NotServing = 0, CrashLoop = 0 } = counts
        const running = Serving + NotServing + CrashLoop
        t.equal(
          misrepresented,
          arm.name === 'legacy' ? running : 0,
          `${arm.name}, ${workload.name}`,
        )
      }
    }
  },
)

void t.test(
  'what the API says is what its readers have: a phase, and the network asked for',
  async (t) => {
    const said = (arm: string, workload: string): unknown => {
      const row = modelRows().find(
        (each) => each.arm.name === arm && each.workload.name === workload,
      )
      return row?.modelled.said
    }
    t.strictSame(said('legacy', 'same-port'), { 'Running on the pod network': 3 })
    t.strictSame(said('plain', 'same-port'), { 'Pending on the pod network': 3 })
    t.strictSame(said('admission', 'same-port'), {
      "Running on the host's network": 2,
      "Pending on the host's network": 1,
    })
  },
)
