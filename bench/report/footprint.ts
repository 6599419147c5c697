import type { PeerName } from '../peers/peer.ts'
import type { Results } from './results.ts'

type Figure = readonly [row: string, figure: string, digits: number]

/** What README.md shows of the kept run: a row's words, its figures, and how they are written. */
const shown: readonly (readonly [words: string, text: string, ...figures: Figure[]])[] = [
  [
    'Resident memory when idle, of it anonymous',
    '% MB, % MB',
    ['memory-idle', 'resident', 0],
    ['memory-idle', 'anonymous', 0],
  ],
  ['Resident memory after the benchmark', '% MB', ['memory-after', 'resident', 0]],
  ['A list of 500 pods, offline', '% ms', ['offline-list-json', 'time', 1]],
  ['CPU of a recorded list', '% ms', ['list-json', 'cpu', 0]],
  [
    'CPU of 1,000 GETs: recorded, passed on',
    '% s, % s',
    ['get-recorded', 'cpu', 2],
    ['get-passed', 'cpu', 2],
  ],
]

/** The rows of what a node's hub costs, beside yurthub. */
export const footprintRows = (results: Results): string[][] =>
  shown.map(([words, text, ...figures]) => {
    const of = (peer: PeerName): string =>
      figures.reduce(
        (filled, [row, figure, digits]) =>
          filled.replace('%', medianOf(results, row, figure, peer).toFixed(digits)),
        text,
      )
    return [words, of('hub'), of('yurthub')]
  })

/** Throws where the run has no such figure of the peer. */
function medianOf({ rows }: Results, row: string, figure: string, peer: PeerName): number {
  const median = rows.find(({ name }) => name === row)?.peers.find((each) => each.peer === peer)
    ?.figures[figure]?.median
  if (median === undefined) throw new Error(`the run has no ${figure} of ${peer} in ${row}`)
  return median
}
