import buildConnector from 'undici/lib/core/connect.js'
import Client from 'undici/lib/dispatcher/client.js'
import Pool from 'undici/lib/dispatcher/pool.js'

/**
 * The parts of undici that the hub uses. The whole package includes fetch, WebSocket, caches and
 * mocks: 8 MB of memory, and 55 ms at startup. The paths are those of the release in the lock file;
 * without the whole, dispatchers have `dispatch` but neither `request` nor `fetch`.
 */
export const undici = { Client, Pool, buildConnector }
