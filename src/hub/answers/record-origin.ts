import { nodeIdentity, sharedIdentity, type Identity } from '../../api/request/identity.ts'
import type { HeaderList } from '../../http/exchange/headers.ts'
import { withWarning } from './staleness.ts'

/** Where an answer that is made from records comes from. */
export interface RecordOrigin {
  /** The callers whose records these are. */
  readonly identities: Iterable<Identity>
  /** When the least recently confirmed part was confirmed; 0: not known. */
  readonly confirmedAt: number
  /** Whether the cluster may have more than the answer. */
  readonly isPartial?: boolean
  /** How many objects of the answer the node has written offline. */
  readonly written?: number
}

/** A person may read every name; a log line may be long. */
const mostNamed = 5

/** Adds `Age` and the `Warning` that says where the answer comes from. */
export function withOrigin(headers: HeaderList, origin: RecordOrigin): HeaderList {
  const named = Array.from(origin.identities, nameOf)
  const others = named.length - mostNamed
  const who = [...named.slice(0, mostNamed), ...(others > 0 ? [`${others} others`] : [])]
  const more = origin.isPartial ? '; it is what they have read, and the cluster may have more' : ''
  const here = origin.written ? `; ${origin.written} written here, and not in the cluster` : ''
  const note = `; as recorded for ${who.join(', ')}${more}${here}`
  return withWarning(headers, origin.confirmedAt, note)
}

/** A caller as people know it. Its uid and the hash of its token say nothing to them. */
function nameOf(identity: Identity): string {
  if (identity === nodeIdentity) return 'the node'
  if (identity === sharedIdentity) return 'all callers'
  const [kind, rest = ''] = identity.split(':')
  if (kind !== 'account') return 'a caller with a token'
  const [namespace, name] = rest.split('/')
  return `service account ${namespace}/${name}`
}
