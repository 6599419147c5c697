import type { Exchange } from '../../http/exchange/exchange.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import type { Recordable } from './policy.ts'

/** What the recorder reports. None of it keeps an answer from its client. */
export interface RecorderHooks {
  readonly onRecorded: (kind: Recordable['kind']) => void
  /** The store would not take it; the client was answered all the same. */
  readonly onStoreFailure: (cause: unknown) => void
  /** An answer that could not be understood. */
  readonly onMalformed: (cause: unknown, exchange: Exchange) => void
  readonly onUnpacked: OnUnpacked
}
