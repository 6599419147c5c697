// npm run bench -- host-network: what becomes of pods on a host-network pool under each approach.
// docs/comparison.md has the result.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { noNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { noControlPlane } from '../../test/kit/control-plane.ts'
import { noKubelet } from '../../test/kit/kubelet.ts'
import { Lifetime } from '../lifetime.ts'
import { machine } from '../machine.ts'
import { arms } from './arms.ts'
import type { NodeKind } from './node.ts'
import { textOf } from './outcome.ts'
import { pictureOf } from './picture.ts'
import { startRealPlane, versionsOf } from './plane.ts'
import { startReality } from './reality.ts'
import { captionOf, madeNow, type Run, writeRun } from './record.ts'
import { agrees, detailTableOf, modelRows, type Row, tableOf } from './table.ts'
import { timelineOf } from './timeline.ts'

const usage = `Usage: npm run bench -- host-network [--model] [--arms A,B] [--workloads A,B] [--seconds N] [--json FILE] [--svg FILE] [--series FILE] [--docs]

Every workload under every arm, on a real scheduler and kubelets where there are any; with --model by
the model of them alone. Each is watched for --seconds at least (20). --json has all that was seen, --svg a picture of what came of it, --series one of
what was when; --docs keeps it as the run that docs/comparison.md shows, if all rows were seen. At the end
it says how many rows agree with the model. Exit code 1: not all do.
`

export async function compareHostNetwork(
  argv: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      model: { type: 'boolean', default: false },
      arms: { type: 'string' },
      workloads: { type: 'string' },
      seconds: { type: 'string', default: '20' },
      json: { type: 'string' },
      svg: { type: 'string' },
      series: { type: 'string' },
      docs: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    say(usage)
    return 0
  }
  const all = modelRows()
  const wanted = all.filter(
    ({ arm, workload }) =>
      (values.arms?.split(',').includes(arm.name) ?? true) &&
      (values.workloads?.split(',').includes(workload.name) ?? true),
  )
  const missing = values.model
    ? 'only the model was asked for'
    : (noControlPlane() ?? noKubelet() ?? noNodeNetwork())
  say(missing === undefined ? machine() : `from the model: ${missing}`)
  const run =
    missing === undefined
      ? await observed(wanted, Number(values.seconds) * 1000, say)
      : { made: madeNow('as the model has it', 'none'), rows: wanted }
  for (const line of [...tableOf(run.rows), '', ...detailTableOf(run.rows)]) say(line)
  for (const { name, title } of arms) say(`${name}: ${title}`)
  const caption = captionOf(run.made)
  if (values.json !== undefined) writeRun(run, values.json)
  if (values.svg !== undefined) writeFileSync(values.svg, pictureOf(run.rows, caption))
  if (values.series !== undefined) writeFileSync(values.series, timelineOf(run.rows, caption))
  if (missing !== undefined) return 0
  for (const row of run.rows.filter((each) => !agrees(each)))
    say(`! ${row.arm.name}, ${row.workload.name}: the model says ${JSON.stringify(row.modelled)}`)
  const right = run.rows.filter(agrees).length
  say(`${right} of ${run.rows.length} rows agree with the model`)
  if (right < run.rows.length) return 1
  if (values.docs && right === all.length) {
    writeRun(run)
    say('kept in docs/host-network.json; node test/write-tables.ts takes it into the page')
  }
  return 0
}

/** Arms that want the same nodes share them; between two kinds all nodes end. */
async function observed(
  wanted: readonly Row[],
  atLeastMs: number,
  say: (line: string) => void,
): Promise<Run> {
  await using lifetime = new Lifetime(say)
  const real = await startRealPlane(lifetime)
  const seen = new Map<Row, Row>()
  let versions: [string, string] = ['', '']
  for (const kind of kindsOfNodes) {
    const its = wanted.filter(
      ({ arm }) =>
        arm.hostNetworkNodes === kind.hostNetworkNodes && arm.propagates === kind.propagates,
    )
    if (its.length === 0) continue
    await using nodes = new Lifetime(say)
    const reality = await startReality(nodes, real, kind)
    versions = await versionsOf(real)
    for (const row of its) {
      const observed = await reality.observe(row, { atLeastMs })
      say(`${row.arm.name}, ${row.workload.name}: ${textOf(observed)}`)
      seen.set(row, { ...row, observed })
    }
    await reality.retire()
  }
  return { made: madeNow(...versions), rows: wanted.map((row) => seen.get(row) ?? row) }
}

const kindsOfNodes: readonly NodeKind[] = [
  { hostNetworkNodes: false, propagates: false },
  { hostNetworkNodes: true, propagates: true },
  { hostNetworkNodes: true, propagates: false },
]
