import t from 'tap'
import { arms, type Arm } from '../../bench/host-network/arms.ts'
import { modelled } from '../../bench/host-network/model.ts'
import { sameResult, textOf } from '../../bench/host-network/outcome.ts'
import { startRealPlane, startReality } from '../../bench/host-network/reality.ts'
import { workloads, type Workload } from '../../bench/host-network/workloads.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false

/** The rows that are tried here; npm run bench -- host-network tries all. */
const tried: Readonly<Record<string, readonly string[]>> = {
  legacy: ['same-port'],
  explicit: ['same-port'],
  plain: ['same-port'],
}

void t.test(
  'scheduler, kubelets and kernels do what the model of host-network pools says',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startRealPlane(t)
    for (const propagates of [true, false]) {
      await t.test(`legacy filter: ${propagates}`, async (t) => {
        const reality = await startReality(t, plane, { hostNetworkNodes: true, propagates })
        for (const [arm, workload] of rowsOf(propagates)) {
          const expected = modelled(arm, workload)
          const seen = await reality.observe(arm, workload, expected)
          t.ok(
            sameResult(seen, expected),
            `${arm.name}, ${workload.name}: ${textOf(seen)}; ${textOf(expected)} expected`,
          )
        }
        await reality.retire()
      })
    }
  },
)

const rowsOf = (propagates: boolean): [Arm, Workload][] =>
  arms
    .filter((arm) => arm.propagates === propagates)
    .flatMap((arm) =>
      workloads
        .filter(({ name }) => tried[arm.name]?.includes(name))
        .map((workload): [Arm, Workload] => [arm, workload]),
    )
