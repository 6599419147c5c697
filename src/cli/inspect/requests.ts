import type { RequestEntry } from '../../hub/wiring/request-entry.ts'
import { duration, listOf, matching, oneOf, text } from '../../config/value.ts'
import { option, type Option } from '../../config/option.ts'
import { inspection, type Inspected } from './inspection.ts'

const statusCode = matching('CODE', /^[1-5](?:\d\d|xx)$/, 'is no status code, nor a class as 5xx')

const words = (name: string, help: string): Option<readonly string[]> =>
  option({ type: listOf(text(name)), default: [], defaultShown: 'all', help })

/** Which requests to show; the hub selects them, so that the others are not sent. */
const filters = {
  component: words(
    'NAME',
    'The program behind the request, by its User-Agent: kubelet, kube-proxy.',
  ),
  user: words(
    'USER',
    'As whom the caller is known: node, token, unproven, none, or the name of a service account as system:serviceaccount:NAMESPACE:NAME.',
  ),
  verb: words('VERB', 'get, list, watch, patch and so on.'),
  resource: words('RESOURCE', 'pods, endpointslices or endpointslices.discovery.k8s.io.'),
  namespace: option({
    ...words('NAMESPACE', 'Of the requested object or collection.'),
    short: 'n',
  }),
  name: words('NAME', 'Of the object.'),
  code: option({
    type: listOf(statusCode),
    defaultShown: 'all',
    help: 'The status: 503, or a class as 5xx.',
  }),
  source: option({
    type: listOf(oneOf(['cloud', 'cache', 'hub'])),
    defaultShown: 'all',
    help: 'The source of the answer.',
  }),
  'slower-than': option({
    type: duration,
    defaultShown: 'all',
    help: 'The time from the request to the end of its answer, as 500ms.',
  }),
}

/** Where the hub has the requests that the flags name. */
function selected(from: Inspected): string {
  const query = new URLSearchParams()
  for (const name of Object.keys(filters)) {
    const value = from.flag(name) as number | undefined | readonly string[]
    for (const each of typeof value === 'object' ? value : [value])
      if (each !== undefined) query.append(name, String(each))
  }
  return query.size === 0 ? 'requests' : `requests?${query}`
}

export const requests = inspection<{ readonly items: readonly RequestEntry[] }>({
  help: `A watch is shown once it has ended; \`nodehub inspect watches\` has those that are open.
With --watch each request is printed when it has ended, in json as a line. Of a flag with several
values, NAME,NAME, one has to fit; of several flags, all have to.
`,
  flags: filters,
  read: (from) => from.report(selected(from)),
  table: ({ items }) =>
    items.length === 0 ? 'No such request has ended yet.\n' : `${line(head)}${rows(items)}`,
  tail: { path: selected, table: (items) => rows(items as readonly RequestEntry[]) },
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
