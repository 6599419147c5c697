// npm run bench -- cluster: what nodehub cluster does in a large cluster: how many writes and
// requests, how long, in how much memory.
import { parseArgs } from 'node:util'
import { noControlPlane, startControlPlane, administrator } from '../../test/kit/control-plane.ts'
import { Lifetime } from '../lifetime.ts'
import { machine } from '../machine.ts'
import { ClusterProcess, type Figures } from './cluster-process.ts'
import { changePools, seedCluster } from './seed.ts'

const usage = `Usage: npm run bench -- cluster [--nodes N] [--pools N]

Starts a real control plane with so many nodes in so many pools (5000 in 200), then nodehub cluster:
its first start, a change of every pool, a restart.
`

/**
 * Runs the benchmark; 1 where a node was written more than once for a change, or a restart wrote
 * anything.
 */
export async function benchCluster(
  argv: readonly string[],
  say: (line: string) => void,
): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      nodes: { type: 'string', default: '5000' },
      pools: { type: 'string', default: '200' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const [nodes, pools] = [values.nodes, values.pools].map(Number)
  if (values.help || ![nodes, pools].every((each) => Number.isInteger(each) && each! > 0)) {
    say(usage)
    return values.help ? 0 : 2
  }
  const missing = noControlPlane()
  if (missing !== undefined) {
    say(missing)
    return 1
  }
  await using lifetime = new Lifetime(say)
  const plane = await startControlPlane(lifetime)
  say(`${machine()}\n${nodes} nodes in ${pools} pools\n`)
  await seedCluster(plane, nodes!, pools!)
  const kubeconfig = plane.kubeconfig(administrator)
  const rows: [string, Figures][] = []
  {
    await using first = await ClusterProcess.start(kubeconfig)
    rows.push(['first start', await first.settled(nodes!, nodes!)])
    await changePools(plane, pools!)
    rows.push(['each pool changed', await first.settled(nodes!, nodes!)])
  }
  {
    await using second = await ClusterProcess.start(kubeconfig)
    rows.push(['restart', await second.settled(0, nodes!)])
  }
  for (const line of tableOf(rows)) say(line)
  const writes = rows.map(([, figures]) => figures.nodeWrites)
  return writes[1] === nodes && writes[2] === 0 ? 0 : 1
}

function tableOf(rows: readonly [string, Figures][]): string[] {
  const head = [
    '',
    'node writes',
    'pool writes',
    'requests',
    '429',
    'conflicts',
    'seconds',
    'peak MB',
  ]
  const cells = rows.map(([name, figures]) => [
    name,
    `${figures.nodeWrites}`,
    `${figures.poolWrites}`,
    `${figures.requests}`,
    `${figures.shed}`,
    `${figures.conflicts}`,
    figures.seconds.toFixed(1),
    (figures.peakBytes / 1e6).toFixed(0),
  ])
  const all = [head, ...cells]
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)))
  return all.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  '),
  )
}
