import type { GVR } from '../../../api/kube/gvk.ts'
import { nodeIdentity } from '../../../api/request/identity.ts'
import type { Exchange } from '../../../http/exchange/exchange.ts'
import type { ObjectStore } from '../../store/store.ts'
import type { AccessReviews } from './access-reviews.ts'
import { sharedRead, type SharedRead } from './shared-read.ts'

interface SharedRecordsParts {
  readonly store: ObjectStore
  readonly access: AccessReviews
  /** The resources whose collections are shared at present. */
  readonly scope: () => readonly GVR[]
}

/** What is stored of shared collections, and which callers may read it by the last decisions. */
export class SharedRecords {
  readonly scope: SharedRecordsParts['scope']
  readonly #parts: SharedRecordsParts

  constructor(parts: SharedRecordsParts) {
    this.#parts = parts
    this.scope = parts.scope
  }

  /** The read of a shared collection by an exchange; `undefined`: it is none. */
  read(exchange: Exchange): SharedRead | undefined {
    return sharedRead(exchange, this.scope())
  }

  /** Whether the last decisions allow this read. */
  wasAllowed({ credentials, gvr }: SharedRead): boolean {
    const { access } = this.#parts
    return (
      access.last(nodeIdentity, gvr) === true && access.last(credentials.identity, gvr) === true
    )
  }
}
