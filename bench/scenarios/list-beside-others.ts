import { listSlack, type ReadJob, type ReadResult } from '../load/read-load.ts'
import type { RunningPeer } from '../peers/peer.ts'
import type { Setting } from './scenario.ts'

/** How many of the node's pods they want. */
const otherPods = 16

/** Few, so that it is not their own number that makes them wait. */
const otherConnections = 2

/** What other clients do meanwhile, who want one pod each: what they wait for is the event loop. */
export async function othersAt(
  { target }: RunningPeer,
  { writer, pods, seconds }: Setting,
  headers: ReadJob['headers'],
): Promise<ReadJob> {
  const paths = pods.slice(0, otherPods)
  const bytes = await writer.run('sizesOf', { target, paths, headers })
  const connections = otherConnections
  return { target, headers, paths, bytes, slack: 0, connections, seconds }
}

/** One list after the other, each about `bytes` long, for as long as the others take. */
export async function listBesideOthers(
  { load, writer }: Setting,
  { path, headers, bytes }: { path: string; headers: ReadJob['headers']; bytes: number },
  others: ReadJob,
): Promise<{ readonly lists: ReadResult; readonly others: ReadResult }> {
  const { target, seconds } = others
  const meanwhile = writer.run('read', others)
  const lists = await load.run('read', {
    target,
    headers,
    paths: [path],
    bytes: [bytes],
    slack: listSlack,
    connections: 1,
    seconds,
  })
  return { lists, others: await meanwhile }
}
