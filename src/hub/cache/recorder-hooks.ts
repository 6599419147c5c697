import type { Exchange } from '../../http/exchange/exchange.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ObjectOfKind } from '../store/store.ts'
import type { Recordable } from './recordable.ts'

/** The reports of the recorder. No failure keeps an answer from its client. */
export interface RecorderHooks {
  readonly onRecorded: (kind: Recordable['kind']) => void
  /** The store failed; the client was answered all the same. */
  readonly onStoreFailure: (cause: unknown) => void
  /** An answer could not be parsed. */
  readonly onMalformed: (cause: unknown, exchange: Exchange) => void
  /** An API server has accepted an event of the node. */
  readonly onEvent: (gvr: GVR, encoding: Encoding, event: ObjectOfKind) => void
  readonly onUnpacked: OnUnpacked
}
