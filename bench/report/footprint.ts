import type { PeerName } from '../peers/peer.ts'
import type { Results } from './results.ts'

/** A figure of a row in README.md, and the words around the hub's and, in brackets, yurthub's. */
const shown: readonly (readonly [row: string, figure: string, digits: number, words: string])[] = [
  ['memory-idle', 'resident', 0, '% MB resident idle'],
  ['memory-idle', 'anonymous', 0, '% of them backed by no file'],
  ['memory-after', 'resident', 0, '% MB after all rows'],
  ['offline-list-json', 'time', 1, '% ms for a list offline'],
  ['list-json', 'cpu', 0, 'CPU of a recorded list % ms'],
  ['get-recorded', 'cpu', 2, 'of 1,000 recorded gets % s'],
  ['get-passed', 'cpu', 2, 'of 1,000 gets passed on % s'],
  ['watch-json', 'cpu', 1, 'of a watch event % ms in JSON'],
  ['watch-protobuf', 'cpu', 1, '% ms in protobuf'],
]

/** What README.md says of the kept run: what a node's hub takes, with yurthub's in brackets. */
export function footprintOf(results: Results): string {
  const version = /v(\d+\.\d+)/.exec(
    results.peers.find(({ name }) => name === 'yurthub')?.description ?? '',
  )?.[1]
  const cores = /^\d+ cores/.exec(results.machine)?.[0]
  const figures = shown.map(([row, figure, digits, words]) => {
    const of = (peer: PeerName): string => medianOf(results, row, figure, peer).toFixed(digits)
    return `${words.replace('%', of('hub'))} (${of('yurthub')})`
  })
  return `One run beside yurthub ${version}, whose figures stand in brackets ([bench/results.md](bench/results.md), ${cores}, 500 pods): ${figures.join(', ')}.`
}

/** Throws where the run has no such figure of the peer. */
function medianOf({ rows }: Results, row: string, figure: string, peer: PeerName): number {
  const median = rows.find(({ name }) => name === row)?.peers.find((each) => each.peer === peer)
    ?.figures[figure]?.median
  if (median === undefined) throw new Error(`the run has no ${figure} of ${peer} in ${row}`)
  return median
}
