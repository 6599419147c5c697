import t from 'tap'
import { remarksOf, textOf } from '../../bench/host-network/outcome.ts'
import { startRealPlane } from '../../bench/host-network/plane.ts'
import { startReality } from '../../bench/host-network/reality.ts'
import { isAsModelled, modelRows, type Row } from '../../bench/host-network/table.ts'
import { noNodeNetwork } from '../kit/cluster/node-network.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { noKubelet } from '../kit/kubelet.ts'

t.setTimeout(400_000)

const skip = noControlPlane() ?? noKubelet() ?? noNodeNetwork() ?? false

/** The rows that are tried here, by arm; npm run bench -- host-network tries all. */
const tried: Readonly<Record<string, readonly string[]>> = {
  legacy: ['same-port', 'net-admin', 'holder-ends'],
  plain: ['same-port'],
  excluded: ['daemon-set'],
  explicit: ['baseline'],
  admission: ['same-port'],
  'plain-cni': ['distinct-ports'],
}

void t.test(
  'scheduler, hubs, kubelets and kernels match the model of host-network pools',
  { skip, timeout: 400_000 },
  async (t) => {
    const plane = await startRealPlane(t)
    for (const podNetwork of [false, true]) {
      await t.test(podNetwork ? 'with a CNI plugin' : 'without a pod network', async (t) => {
        const kind = { hostNetworkNodes: true, podNetwork, hub: 'nodehub' } as const
        const reality = await startReality(t, plane, kind)
        for (const row of rowsOn(podNetwork)) {
          const { arm, workload, modelled: expected } = row
          const seen = await reality.observe(row)
          t.ok(
            isAsModelled(seen, row),
            `${arm.name}, ${workload.name}: ${textOf(seen)} (${remarksOf(seen)}); ${textOf(expected)} (${remarksOf(expected)}) expected`,
          )
        }
        await reality.retire()
      })
    }
  },
)

const rowsOn = (podNetwork: boolean): readonly Row[] =>
  modelRows().filter(
    ({ arm, workload }) =>
      arm.podNetwork === podNetwork && tried[arm.name]?.includes(workload.name),
  )
