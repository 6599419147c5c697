import { createRequire } from 'node:module'
import type * as Whole from 'undici'

const part = createRequire(import.meta.url)

/**
 * undici by those of its parts that the hub uses. As a whole it brings fetch, WebSocket, caches and
 * mocks: 8 MB of memory, and 55 ms of a start. The paths are of the release that the lock file
 * pins; without the whole, dispatchers have `dispatch` and neither `request` nor `fetch`.
 */
export const undici = {
  Client: part('undici/lib/dispatcher/client.js') as typeof Whole.Client,
  Pool: part('undici/lib/dispatcher/pool.js') as typeof Whole.Pool,
  buildConnector: part('undici/lib/core/connect.js') as typeof Whole.buildConnector,
}
