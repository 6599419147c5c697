import { createRequire } from 'node:module'
import type * as Whole from 'undici'

const part = createRequire(import.meta.url)

/**
 * The parts of undici that the hub uses. The whole package includes fetch, WebSocket, caches and
 * mocks: 8 MB of memory, and 55 ms at startup. The paths are those of the release in the lock file;
 * without the whole, dispatchers have `dispatch` but neither `request` nor `fetch`.
 */
export const undici = {
  Client: part('undici/lib/dispatcher/client.js') as typeof Whole.Client,
  Pool: part('undici/lib/dispatcher/pool.js') as typeof Whole.Pool,
  buildConnector: part('undici/lib/core/connect.js') as typeof Whole.buildConnector,
}
