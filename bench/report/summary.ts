import { type FigureRow, aimText, isReached, numberText } from './figures.ts'
import type { PeerName } from '../peers/peer.ts'

type Line = readonly [words: string, row: string, figure: string]

/** What an operator asks first, in the order in which it is shown: a row and a figure of it. */
const summary: readonly Line[] = [
  ['GET passed on: CPU, s per 1,000', 'get-passed', 'cpu'],
  ['GET passed on: p50, ms', 'get-passed', 'p50'],
  ['GET recorded: CPU, s per 1,000', 'get-recorded', 'cpu'],
  ['Allocated for a GET passed on, KB', 'allocated', 'passed'],
  ['LIST of 500 pods, JSON: ms', 'list-json', 'time'],
  ['LIST of 500 pods, JSON: CPU, ms', 'list-json', 'cpu'],
  ['LIST of 500 pods, protobuf: CPU, ms', 'list-protobuf', 'cpu'],
  ['WATCH at 100 events/s, JSON: CPU, ms an event', 'watch-json', 'cpu'],
  ['WATCH at 100 events/s, JSON: p99 added, ms', 'watch-json', 'addedP99'],
  ['WATCH at 100 events/s, protobuf: p99 added, ms', 'watch-protobuf', 'addedP99'],
  ['50 watches of one collection: p99, ms', 'fan-out-50', 'delayP99'],
  ['LIST of 500 pods offline, JSON: ms', 'offline-list-json', 'time'],
  ['GET offline: CPU, s per 1,000', 'offline-get', 'cpu'],
  ['LIST filtered, again : unfiltered', 'filtered-list-endpointslices-500-json', 'ratio'],
  ['Start to first GET, API server gone : `node -e 0`', 'start-gone', 'times'],
  ['First GET when the API server freezes, ms', 'outage-frozen', 'get'],
  ['Written to the disk : bytes of the events', 'disk', 'times'],
  ['Resident when idle, MB', 'memory-idle', 'resident'],
  ['Anonymous memory when idle, MB', 'memory-idle', 'anonymous'],
  ['Resident after all rows, MB', 'memory-after', 'resident'],
]

/** The rows that the summary needs. */
export const summaryRows: readonly string[] = [...new Set(summary.map(([, row]) => row))]

const shown: readonly PeerName[] = ['hub', 'yurthub', 'http-proxy', 'haproxy-http', 'direct']

export const summaryHead: readonly string[] = ['', ...shown, 'Target', 'Reached']

/** The summary's cells; lines that the run did not measure are left out. */
export const summaryLines = (figures: readonly FigureRow[]): string[][] =>
  summary.flatMap(([words, row, key]) => {
    const found = figures.find((each) => each.row.name === row && each.metric.key === key)
    if (found === undefined) return []
    const { metric, of } = found
    const aims = metric.aims ?? []
    return [
      [
        words,
        ...shown.map((peer) => {
          const figure = of(peer)
          return figure ? numberText(figure.median, metric.digits) : ''
        }),
        aims.map(aimText).join('; '),
        aims.map((aim) => verdictOf(isReached(of('hub'), aim))).join('; '),
      ],
    ]
  })

/** In bold where it is not reached. */
export const verdictOf = (is: boolean | undefined): string =>
  is === undefined ? 'not measured' : is ? 'yes' : '**no**'
