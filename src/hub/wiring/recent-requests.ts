import { RecentItems } from '../../base/recent-items.ts'
import type { Filtered } from '../../http/exchange/explanation.ts'
import type { AnswerDetail, AnswerLine } from '../pipeline/trace.ts'

/** A request that has ended: names, and nothing of its query, headers or bodies. */
export interface RequestEntry {
  /** When it ended, in RFC 3339. */
  readonly at: string
  readonly component: string
  readonly caller: AnswerDetail['caller']
  readonly verb: string
  /** `endpointslices.discovery.k8s.io`; empty where the request is not about a resource. */
  readonly resource: string
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

/** The last requests of clients. A watch is among them once it has ended. */
export class RecentRequests extends RecentItems<RequestEntry> {
  constructor() {
    super(mostRequests)
  }

  /** `at`: in milliseconds since the epoch. */
  note(line: AnswerLine, { caller, sentBytes, explanation = {} }: AnswerDetail, at: number): void {
    const { component, verb, resource, path, code, ms, source } = line
    const { reason, ...rest } = explanation
    this.add({
      at: new Date(at).toISOString(),
      component,
      caller,
      verb,
      resource,
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

/** The beginning of a text without the rest in memory, which a mere slice would hold. */
const copied = (text: string, most: number): string => Buffer.from(text.slice(0, most)).toString()
