import { RecentItems } from '../../base/recent-items.ts'
import type { AnswerDetail, AnswerLine } from '../pipeline/trace.ts'
import type { RequestEntry } from './request-entry.ts'
import { requestFilter } from './request-filter.ts'

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
