import type { Filtered } from '../../http/exchange/explanation.ts'
import type { AnswerDetail } from '../pipeline/trace.ts'

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
