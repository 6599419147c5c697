// npm run bench -- host-network: what becomes of pods on a host-network pool under each approach. docs/host-network.md has the result.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { noNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { noControlPlane } from '../../test/kit/control-plane.ts'
import { noKubelet } from '../../test/kit/kubelet.ts'
import { Lifetime } from '../lifetime.ts'
import { machine } from '../machine.ts'
import { arms } from './arms.ts'
import { sameResult, textOf } from './outcome.ts'
import { pictureOf } from './picture.ts'
import { startRealPlane, startReality } from './reality.ts'
import { modelRows, type Row, remarksOn, tableOf } from './table.ts'

const usage = `Usage: npm run bench -- host-network [--model] [--json FILE] [--svg FILE]

Every workload under every arm, on a real scheduler and kubelets where there are any; with --model by
the model of them alone. Exit code 1: what was seen is not what the model says.
`

export async function compareHostNetwork(
  argv: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      model: { type: 'boolean', default: false },
      json: { type: 'string' },
      svg: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    say(usage)
    return 0
  }
  const missing = values.model
    ? 'only the model was asked for'
    : (noControlPlane() ?? noKubelet() ?? noNodeNetwork())
  say(missing === undefined ? machine() : `from the model: ${missing}`)
  const rows = missing === undefined ? await observed(say) : modelRows()
  for (const line of [...tableOf(rows), '', ...remarksOn(rows)]) say(line)
  for (const { name, title } of arms) say(`${name}: ${title}`)
  if (values.json !== undefined) {
    const told = rows.map(({ arm, workload, ...results }) => ({
      arm: arm.name,
      workload: workload.name,
      ...results,
    }))
    writeFileSync(values.json, `${JSON.stringify({ machine: machine(), rows: told }, null, 2)}\n`)
  }
  if (values.svg !== undefined) writeFileSync(values.svg, pictureOf(rows))
  const wrong = rows.filter((row) => row.observed && !sameResult(row.observed, row.modelled))
  for (const { arm, workload, modelled } of wrong)
    say(`! ${arm.name}, ${workload.name}: the model says ${textOf(modelled)}`)
  return wrong.length > 0 ? 1 : 0
}

/** Arms that want the same nodes share them; between two kinds all nodes end. */
async function observed(say: (line: string) => void): Promise<readonly Row[]> {
  await using lifetime = new Lifetime(say)
  const plane = await startRealPlane(lifetime)
  const rows: Row[] = []
  for (const { hostNetworkNodes, propagates } of kindsOfNodes()) {
    await using nodes = new Lifetime(say)
    const reality = await startReality(nodes, plane, { hostNetworkNodes, propagates })
    for (const row of modelRows()) {
      const { arm } = row
      if (arm.hostNetworkNodes !== hostNetworkNodes || arm.propagates !== propagates) continue
      const seen = await reality.observe(arm, row.workload, row.modelled)
      say(`${arm.name}, ${row.workload.name}: ${textOf(seen)}`)
      rows.push({ ...row, observed: seen })
    }
    await reality.retire()
  }
  const order = modelRows()
  const indexOf = ({ arm, workload }: Row): number =>
    order.findIndex((row) => row.arm === arm && row.workload === workload)
  return rows.toSorted((a, b) => indexOf(a) - indexOf(b))
}

const kindsOfNodes = () => [
  { hostNetworkNodes: false, propagates: false },
  { hostNetworkNodes: true, propagates: true },
  { hostNetworkNodes: true, propagates: false },
]
