import type { WatchEvent } from '../../src/api/codec/watch.ts'
import type { Representation } from '../../src/api/request/representation.ts'
import type { WatchReply } from '../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../src/http/exchange/headers.ts'

/** An API server's answer to a watch of objects of a `kind` of the core group. */
export const watchReply = (
  representation: Representation,
  kind: string,
  events: AsyncIterable<readonly WatchEvent[]>,
): WatchReply => ({
  kind: 'watch',
  from: 'cloud',
  status: 200,
  headers: new HeaderList([]),
  representation: () => representation,
  gvk: () => ({ group: '', version: 'v1', kind }),
  events,
})
