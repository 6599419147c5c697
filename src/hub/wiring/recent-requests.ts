import { RecentItems } from '../../base/recent-items.ts'
import type { Filtered } from '../../http/exchange/explanation.ts'
import type { AnswerDetail, AnswerLine } from '../pipeline/trace.ts'

/** A request that has ended: names, and nothing of its query, headers or bodies. */
export interface RequestEntry {
  /** When it ended, in RFC 3339. */
  readonly at: string
  readonly component: string
  readonly caller: AnswerDetail['caller']
  /** The service account that the caller is known as. */
  readonly account?: string
  readonly verb: string
  /** `endpointslices.discovery.k8s.io`; empty where the request is not about a resource. */
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  readonly path: string
  readonly code: number
  /** From the request to the end of its answer. */
  readonly ms: number
  /** Of the body, as sent to the client; 0 for one that changes its protocol. */
  readonly bytes: number
  readonly source: string
  /** Why this source answered. */
  readonly reason?: string
  /** The API server that answered. */
  readonly upstream?: string
  /** Filters that acted, and how many objects they changed. */
  readonly filtered?: Filtered
}

export const mostRequests = 512

/** In characters. */
const longestPath = 200
const longestReason = 200

/**
 * A request as it was answered: few are ever read, so an entry is made for a reader alone. What its
 * texts hold in memory is at most the head of a request, which Node limits.
 */
interface Noted {
  readonly line: AnswerLine
  readonly detail: AnswerDetail
  /** In milliseconds since the epoch. */
  readonly at: number
}

/** The last requests of clients. A watch is among them once it has ended. */
export class RecentRequests {
  readonly #noted = new RecentItems<Noted>(mostRequests)

  /** Those that a query names. Throws where it has a parameter that selects nothing. */
  select(query: URLSearchParams): Pick<RecentItems<RequestEntry>, 'items' | 'follow'> {
    const fits = requestFilter(query) ?? (() => true)
    const chosen = (noted: readonly Noted[]): RequestEntry[] => noted.map(entryOf).filter(fits)
    return {
      items: chosen(this.#noted.items),
      follow: (signal) => some(this.#noted.follow(signal), chosen),
    }
  }

  /** `at`: in milliseconds since the epoch. */
  note(line: AnswerLine, detail: AnswerDetail, at: number): void {
    this.#noted.add({ line, detail, at })
  }
}

function entryOf({ line, detail, at }: Noted): RequestEntry {
  const { component, verb, resource, path, code, ms, source } = line
  const { caller, account, namespace, name, sentBytes, explanation = {} } = detail
  const { reason, ...rest } = explanation
  return {
    at: new Date(at).toISOString(),
    component,
    caller,
    ...(account !== undefined && { account: account.slice(0, longestPath) }),
    verb,
    resource,
    ...(namespace !== undefined && { namespace: namespace.slice(0, longestPath) }),
    ...(name !== undefined && { name: name.slice(0, longestPath) }),
    path: path.slice(0, longestPath),
    code,
    ms: Math.round(ms * 10) / 10,
    bytes: sentBytes,
    source,
    ...(reason !== undefined && { reason: reason.slice(0, longestReason) }),
    ...rest,
  }
}

async function* some(
  batches: AsyncIterable<readonly Noted[]>,
  chosen: (noted: readonly Noted[]) => RequestEntry[],
): AsyncGenerator<readonly RequestEntry[]> {
  for await (const batch of batches) {
    const fitting = chosen(batch)
    if (fitting.length > 0) yield fitting
  }
}

/** The parameters that select requests; each has one value or several, of which one has to fit. */
const fits: Readonly<Record<string, (entry: RequestEntry, value: string) => boolean>> = {
  component: ({ component }, value) => component === value,
  /** The caller's kind of identity, or the name of its account. */
  user: ({ caller, account }, value) => caller === value || account === value,
  verb: ({ verb }, value) => verb === value,
  /** With or without its group. */
  resource: ({ resource }, value) => resource === value || resource.split('.')[0] === value,
  namespace: ({ namespace }, value) => namespace === value,
  name: ({ name }, value) => name === value,
  /** A code, or a class of them as `5xx`. */
  code: ({ code }, value) =>
    value.endsWith('xx') ? Math.floor(code / 100) === Number(value[0]) : code === Number(value),
  source: ({ source }, value) => source === value,
  /** In milliseconds. */
  'slower-than': ({ ms }, value) => ms > Number(value),
}

/**
 * Whether a request is one of those that the query names; `undefined`: it names none. Throws where
 * it has a parameter that selects nothing.
 */
function requestFilter(query: URLSearchParams): ((entry: RequestEntry) => boolean) | undefined {
  const wanted = [...new Set(query.keys())].map((name) => {
    const fit = Object.hasOwn(fits, name) ? fits[name] : undefined
    if (!fit) throw new Error(`requests are not selected by ${JSON.stringify(name)}`)
    return { fit, values: query.getAll(name) }
  })
  if (wanted.length === 0) return undefined
  return (entry) => wanted.every(({ fit, values }) => values.some((value) => fit(entry, value)))
}
