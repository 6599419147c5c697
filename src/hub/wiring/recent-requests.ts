import { RecentItems } from '../../base/recent-items.ts'
import type { AnswerDetail, AnswerLine } from '../pipeline/trace.ts'
import type { RequestEntry } from './request-entry.ts'
import { requestFilter } from './request-filter.ts'

export const mostRequests = 512

/** In characters. */
const longestPath = 200
const longestReason = 200

/** The last requests of clients. A watch is among them once it has ended. */
export class RecentRequests extends RecentItems<RequestEntry> {
  constructor() {
    super(mostRequests)
  }

  /** Those that a query names. Throws where it has a parameter that selects nothing. */
  select(query: URLSearchParams): Pick<RecentItems<RequestEntry>, 'items' | 'follow'> {
    const fits = requestFilter(query)
    if (!fits) return this
    return {
      items: this.items.filter(fits),
      follow: (signal) => some(this.follow(signal), fits),
    }
  }

  /** `at`: in milliseconds since the epoch. */
  note(line: AnswerLine, detail: AnswerDetail, at: number): void {
    const { component, verb, resource, path, code, ms, source } = line
    const { caller, account, namespace, name, sentBytes, explanation = {} } = detail
    const { reason, ...rest } = explanation
    this.add({
      at: new Date(at).toISOString(),
      component,
      caller,
      ...(account !== undefined && { account: copied(account, longestPath) }),
      verb,
      resource,
      ...(namespace !== undefined && { namespace: copied(namespace, longestPath) }),
      ...(name !== undefined && { name: copied(name, longestPath) }),
      path: copied(path, longestPath),
      code,
      ms: Math.round(ms * 10) / 10,
      bytes: sentBytes,
      source,
      ...(reason !== undefined && { reason: copied(reason, longestReason) }),
      ...rest,
    })
  }
}

async function* some<T>(
  batches: AsyncIterable<readonly T[]>,
  fits: (item: T) => boolean,
): AsyncGenerator<readonly T[]> {
  for await (const batch of batches) {
    const fitting = batch.filter(fits)
    if (fitting.length > 0) yield fitting
  }
}

/** The beginning of a text without the rest in memory, which a mere slice would hold. */
const copied = (text: string, most: number): string => Buffer.from(text.slice(0, most)).toString()
