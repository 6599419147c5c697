import type { RequestEntry } from '../../hub/wiring/recent-requests.ts'
import { inspection } from './inspection.ts'

export const requests = inspection<{ readonly items: readonly RequestEntry[] }>({
  help: `A watch is shown once it has ended; \`nodehub inspect watches\` has those that are open.
With --watch each request is printed when it has ended, in json as a line.
`,
  read: async (from) =>
    (await from.report('requests')) as { readonly items: readonly RequestEntry[] },
  table: ({ items }) =>
    items.length === 0 ? 'No request has ended yet.\n' : `${line(head)}${rows(items)}`,
  tail: { path: 'requests', table: (items) => rows(items as readonly RequestEntry[]) },
})

/** In fixed widths: with --watch the rows to come are not known. */
const widths = [24, 16, 15, 8, 44, 4, 6, 9, 9]
const head = ['TIME', 'COMPONENT', 'CALLER', 'VERB', 'WHAT', 'CODE', 'SOURCE', 'MS', 'BYTES', 'WHY']

const rows = (items: readonly RequestEntry[]): string =>
  items
    .map((each) =>
      line([
        each.at,
        each.component,
        each.caller,
        each.verb,
        each.path,
        String(each.code),
        each.source,
        String(each.ms),
        String(each.bytes),
        why(each),
      ]),
    )
    .join('')

function line(cells: readonly string[]): string {
  const padded = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  return `${padded.join('  ').trimEnd()}\n`
}

function why({ reason, upstream, filtered }: RequestEntry): string {
  const { edited = 0, withheld = 0 } = filtered?.objects ?? {}
  const counts = filtered?.objects ? ` (edited ${edited}, withheld ${withheld})` : ''
  return [
    reason ?? '-',
    ...(upstream === undefined ? [] : [upstream]),
    ...(filtered ? [`filters ${filtered.filters.join(', ')}${counts}`] : []),
  ].join('; ')
}
