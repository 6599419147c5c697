import t from 'tap'
import { sameResult, textOf } from '../../bench/host-network/outcome.ts'
import { startRealPlane } from '../../bench/host-network/plane.ts'
import { startReality } from '../../bench/host-network/reality.ts'
import { modelRows, type Row } from '../../bench/host-network/table.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false

/** The rows that are tried here; npm run bench -- host-network tries all. */
const tried: Readonly<Record<string, readonly string[]>> = {
  legacy: ['same-port'],
  excluded: ['daemon-set'],
  admission: ['same-port'],
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
        for (const row of rowsOf(propagates)) {
          const { arm, workload, modelled: expected } = row
          const seen = await reality.observe(row)
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

const rowsOf = (propagates: boolean): readonly Row[] =>
  modelRows().filter(
    ({ arm, workload }) =>
      arm.propagates === propagates && tried[arm.name]?.includes(workload.name),
  )
