import type { TrafficRow } from '../../hub/wiring/daily-traffic.ts'
import { count } from '../../config/value.ts'
import { aligned } from '../aligned.ts'
import { commandFlag } from '../command-flags.ts'
import { inspection } from './inspection.ts'

type Sum = Omit<TrafficRow, 'day'>

interface TrafficReport {
  /** The first day and the last, in UTC. */
  readonly from: string
  readonly to: string
  /** The largest first. */
  readonly traffic: readonly Sum[]
}

export const traffic = inspection<TrafficReport>({
  ofStopped: true,
  help: `Counts the bytes of bodies as they are on the wire, from UTC midnight on. Exec, attach and
port-forward are not counted, nor are uploads without a Content-Length.
`,
  flags: {
    days: commandFlag({
      type: count(1, 31),
      default: 1,
      help: 'Adds up so many days; 1 is today.',
    }),
  },
  read: async (from) => {
    const { rows } = (await from.report('traffic')) as { readonly rows: readonly TrafficRow[] }
    const days = Number(from.flag('days'))
    const to = dayOf(Date.now())
    const first = dayOf(Date.now() - (days - 1) * 24 * 60 * 60_000)
    return { from: first, to, traffic: added(rows.filter(({ day }) => day >= first)) }
  },
  table: ({ from, to, traffic: all }) => {
    const span = from === to ? `on ${to}` : `from ${from} to ${to}`
    if (all.length === 0) return `No traffic was counted ${span}.\n`
    const total = all.reduce(plus, { component: '(all)', resource: '', ...none })
    return `Bytes ${span} (UTC)\n\n${aligned(
      ['COMPONENT', 'RESOURCE', 'FROM API SERVERS', 'TO API SERVERS', 'FROM CLIENTS', 'TO CLIENTS'],
      [total, ...all].map((each) => [
        each.component === '' ? '-' : each.component,
        each.resource === '' ? '-' : each.resource,
        String(each.receivedBytes),
        String(each.sentBytes),
        String(each.requestBytes),
        String(each.answerBytes),
      ]),
    )}`
  },
})

const none = { receivedBytes: 0, sentBytes: 0, requestBytes: 0, answerBytes: 0 }

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

const plus = (a: Sum, b: Sum): Sum => ({
  component: a.component,
  resource: a.resource,
  receivedBytes: a.receivedBytes + b.receivedBytes,
  sentBytes: a.sentBytes + b.sentBytes,
  requestBytes: a.requestBytes + b.requestBytes,
  answerBytes: a.answerBytes + b.answerBytes,
})

/** The rows of all days together, by component and resource. */
function added(rows: readonly TrafficRow[]): readonly Sum[] {
  const sums = new Map<string, Sum>()
  for (const { day: _day, ...row } of rows) {
    const key = `${row.component} ${row.resource}`
    const before = sums.get(key)
    sums.set(key, before ? plus(before, row) : row)
  }
  const wire = (sum: Sum): number => sum.receivedBytes + sum.sentBytes
  const local = (sum: Sum): number => sum.requestBytes + sum.answerBytes
  return [...sums.values()].toSorted((a, b) => wire(b) - wire(a) || local(b) - local(a))
}
