// npm run bench -- host-network: what becomes of pods on a host-network pool under each approach.
// docs/design/host-network-comparison.md has the result.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { noNodeNetwork } from '../../test/kit/cluster/node-network.ts'
import { openWorkspace } from '../../test/kit/cluster/workspace.ts'
import { noControlPlane } from '../../test/kit/control-plane.ts'
import { noKubelet } from '../../test/kit/kubelet.ts'
import { Lifetime } from '../lifetime.ts'
import { machine } from '../machine.ts'
import { arms } from './arms.ts'
import type { NodeKind } from './node.ts'
import { remarksOf, textOf } from './outcome.ts'
import { countsBefore, type Observed } from './observed.ts'
import { modelledBefore } from './model.ts'
import { pictureOf } from './picture.ts'
import { type RealPlane, startRealPlane, versionsOf } from './plane.ts'
import { startReality } from './reality.ts'
import { captionOf, madeNow, mergeIntoRecord, type Record, writeRecord } from './record.ts'
import { reusingArchive } from './reusing.ts'
import { agrees, costTableOf, isAsModelled, modelRows, type Row, tableOf } from './table.ts'
import { timelineOf } from './timeline.ts'
import { watchOf } from './watch.ts'

const usage = `Usage: npm run bench -- host-network [--model] [--arms A,B] [--workloads A,B] [--runs N] [--clusters N] [--yurthub FILE] [--seconds N] [--json FILE] [--svg FILE] [--series FILE] [--docs]

Every workload under every arm, on a real scheduler and kubelets where there are any; with --model by
the model of them alone. --runs repeats all of it, each time in an order of its own, and the spread
is told. --clusters says how many control planes are observed at a time, each with nodes of its own
(4). --yurthub is a program of OpenYurt 1.4 with that very name; without, its rows are left out.
One workload is watched for --seconds at least (20), to measure what a node uses meanwhile.
--json has all that was seen, --svg a picture of what came of it, --series one of what was when;
--docs puts the rows that were seen into the record that docs/design/host-network-comparison.md shows. At the end it
says how many rows agree with the model. Exit code 1: not all do.
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
      runs: { type: 'string', default: '1' },
      clusters: { type: 'string', default: '4' },
      yurthub: { type: 'string' },
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
  const wanted = modelRows().filter(
    ({ arm, workload }) =>
      (values.arms?.split(',').includes(arm.name) ?? true) &&
      (values.workloads?.split(',').includes(workload.name) ?? true),
  )
  const missing = values.model
    ? 'only the model was asked for'
    : (noControlPlane() ?? noKubelet() ?? noNodeNetwork())
  say(missing === undefined ? machine() : `from the model: ${missing}`)
  const began = performance.now()
  let record: Record = { made: madeNow('as the model has it', 'none'), rows: wanted }
  if (missing === undefined)
    for (let run = 0; run < Number(values.runs); run += 1) {
      const { rows, made } = record
      const runBegan = performance.now()
      const seen = await observed(
        rows,
        {
          atLeastMs: Number(values.seconds) * 1000,
          clusters: Number(values.clusters),
          yurthub: values.yurthub,
          keep: (soFar) => values.json !== undefined && writeRecord(soFar, values.json),
        },
        say,
      )
      const minutes = [...(made.minutes ?? []), minutesSince(runBegan)]
      record = { ...seen, made: { ...seen.made, minutes } }
    }
  for (const line of [...tableOf(record.rows), ...costTableOf(record.rows)]) say(line)
  for (const { name, title } of arms) say(`${name}: ${title}`)
  const caption = captionOf(record.made)
  if (values.json !== undefined) writeRecord(record, values.json)
  if (values.svg !== undefined) writeFileSync(values.svg, pictureOf(record.rows, caption))
  if (values.series !== undefined) writeFileSync(values.series, timelineOf(record.rows, caption))
  if (missing !== undefined) return 0
  const right = record.rows.filter(agrees).length
  say(
    `${right} of ${record.rows.length} rows agree with the model; it took ${minutesSince(began)} minutes`,
  )
  if (values.docs) {
    mergeIntoRecord(record)
    say('kept in docs/design/host-network.json; node test/write-tables.ts takes it into the page')
  }
  return right < record.rows.length ? 1 : 0
}

/** To the tenth. */
const minutesSince = (began: number): number => Math.round((performance.now() - began) / 6_000) / 10

interface ObserveOptions {
  readonly atLeastMs: number
  readonly clusters: number
  readonly yurthub: string | undefined
  /** Is given what was seen so far, now and then. */
  readonly keep: (soFar: Record) => void
}

/**
 * Observes each row once more, in several clusters at a time. What fails is said, and the others go
 * on.
 */
async function observed(
  rows: readonly Row[],
  { atLeastMs, clusters, yurthub, keep }: ObserveOptions,
  say: (line: string) => void,
): Promise<Record> {
  await using lifetime = new Lifetime(say)
  const archive = reusingArchive(openWorkspace(lifetime))
  if (archive === undefined) say('there is no C compiler: rows with SO_REUSEPORT are left out')
  const images = archive === undefined ? [] : [archive]
  const seen = new Map<Row, Observed>()
  let versions: [string, string] = ['', '']
  const soFar = (): Record => ({
    made: madeNow(...versions),
    rows: rows.map((row) => {
      const one = seen.get(row)
      return one ? { ...row, runs: [...row.runs, one] } : row
    }),
  })
  const possible = rows.filter(
    ({ arm, workload }) =>
      (archive !== undefined || workload.programs[0]?.ifTaken !== 'shares') &&
      (arm.hub === 'nodehub' || yurthub !== undefined),
  )
  const shares = kindsOfNodes.map((kind) => ({
    kind,
    left: shuffled(possible.filter(({ arm }) => isOf(kind, arm))),
    observers: 0,
  }))
  const observeOn = async (real: RealPlane, { kind, left }: Share): Promise<void> => {
    await using nodes = new Lifetime(say)
    // Until its nodes are there: what is in their logs tells why they are not.
    nodes.failed = true
    const mixed = left.some(({ workload }) => workload.mixed)
    const reality = await startReality(nodes, real, kind, { mixed, images, yurthub })
    nodes.failed = false
    versions = await versionsOf(real)
    for (let row = left.pop(); row; row = left.pop()) {
      const name = `${row.arm.name}, ${row.workload.name}`
      try {
        const one = await reality.observe(row, watchOf(row, atLeastMs))
        say(`${name}: ${textOf(one)}${remarksOf(one) && ` (${remarksOf(one)})`}`)
        if (!isAsModelled(one, row)) say(`! ${differenceOf(one, row)}`)
        seen.set(row, one)
      } catch (error) {
        say(`! ${name}: ${(error as Error).message}`)
      }
    }
    await reality.retire()
    keep(soFar())
  }
  const observeCluster = async (): Promise<void> => {
    await using cluster = new Lifetime(say)
    let real: RealPlane | undefined
    for (let failures = 0; failures < mostFailures;) {
      const share = fullest(shares)
      if (share === undefined) return
      share.observers += 1
      try {
        real ??= await startRealPlane(cluster)
        await observeOn(real, share)
      } catch (error) {
        failures += 1
        say(`! nodes: ${(error as Error).message}`)
      }
      share.observers -= 1
    }
  }
  await Promise.all(Array.from({ length: clusters }, observeCluster))
  return soFar()
}

/** A cluster whose nodes did not start so often is given up. */
const mostFailures = 3

/** The rows that want nodes of one kind, and how many clusters take them from it. */
interface Share {
  readonly kind: NodeKind
  readonly left: Row[]
  observers: number
}

/** Nodes are not started for fewer rows: others are done with them before. */
const fewestRows = 4

/** Where most is left for one that comes to it. */
function fullest(shares: readonly Share[]): Share | undefined {
  const [first] = shares
    .filter(({ left, observers }) => left.length > fewestRows * observers)
    .toSorted((a, b) => restOf(b) - restOf(a))
  return first
}

/** In rows: those of yurthub take thrice as long, as its nodes serve nothing after a reboot. */
const restOf = ({ kind, left, observers }: Share): number =>
  (left.length * (kind.hub === 'yurthub' ? 3 : 1)) / (observers + 1)

const kindsOfNodes: readonly NodeKind[] = [
  { hostNetworkNodes: false, podNetwork: true, hub: 'nodehub' },
  { hostNetworkNodes: true, podNetwork: false, hub: 'nodehub' },
  { hostNetworkNodes: true, podNetwork: true, hub: 'nodehub' },
  { hostNetworkNodes: true, podNetwork: false, hub: 'yurthub' },
]

const isOf = (kind: NodeKind, arm: NodeKind): boolean =>
  arm.hostNetworkNodes === kind.hostNetworkNodes &&
  arm.podNetwork === kind.podNetwork &&
  arm.hub === kind.hub

/** In an order of chance, so that no row always follows the same other. */
const shuffled = <Of>(all: readonly Of[]): Of[] =>
  all
    .map((each) => ({ each, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ each }) => each)

function differenceOf(seen: Observed, { arm, workload, modelled }: Row): string {
  const pick = (
    { counts, said, misrepresented, remarks }: Observed | Row['modelled'],
    before: object | undefined,
  ) => JSON.stringify({ before, counts, said, misrepresented, remarks })
  const before = workload.happens && modelledBefore(arm, workload).counts
  return `seen ${pick(seen, countsBefore(seen))}, the model says ${pick(modelled, before)}`
}
