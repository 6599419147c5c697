import type { HeaderList } from '../../http/exchange/headers.ts'
import { withWarning } from './staleness.ts'

/** Where an answer that is made from records comes from. */
export interface RecordOrigin {
  /** When the least recently confirmed part was confirmed; 0: not known. */
  readonly confirmedAt: number
  /** Whether the cluster may have more than the answer. */
  readonly isPartial?: boolean
  /** How many objects of the answer the node has written offline. */
  readonly written?: number
}

/** Adds `Age` and the `Warning` that says where the answer comes from. */
export function withOrigin(headers: HeaderList, origin: RecordOrigin): HeaderList {
  const more = origin.isPartial ? '; the cluster may have more' : ''
  const here = origin.written ? `; ${origin.written} written here, and not in the cluster` : ''
  const note = `; as components of this node have read it${more}${here}`
  return withWarning(headers, origin.confirmedAt, note)
}
