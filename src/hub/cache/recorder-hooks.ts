import type { Exchange } from '../../http/exchange/exchange.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { Recordable } from './recordable.ts'

/** What the recorder reports. No failure keeps an answer from its client. */
export interface RecorderHooks {
  readonly onRecorded: (kind: Recordable['kind']) => void
  /** The store failed; the client was answered all the same. */
  readonly onStoreFailure: (cause: unknown) => void
  /** An answer could not be parsed. */
  readonly onMalformed: (cause: unknown, exchange: Exchange) => void
  readonly onUnpacked: OnUnpacked
}
