import { setFlagsFromString } from 'node:v8'
import buildConnector from 'undici/lib/core/connect.js'
import Client from 'undici/lib/dispatcher/client.js'
import Pool from 'undici/lib/dispatcher/pool.js'

/**
 * The parts of undici that the hub uses. The whole package includes fetch, WebSocket, caches and
 * mocks: 8 MB of memory, and 55 ms at startup. The paths are those of the release in the lock file;
 * without the whole, dispatchers have `dispatch` but neither `request` nor `fetch`.
 */
export const undici = { Client, Pool, buildConnector }

/** V8's own: a function is compiled anew once it has run some 13 MB of code. */
const usualBudget = 13_000_000

const { Module } = WebAssembly

/**
 * undici parses HTTP/1.1 in WebAssembly, most of it one large function. V8 compiled that with its
 * optimizing compiler after some ten answers, at each start: 40 ms of CPU, and up to 6 MB of
 * malloc's heap that stay. With this budget it does so after a thousand. V8 reads the budget when
 * it makes a module, and refuses kept code, Node's own too, while it is not the usual one.
 */
WebAssembly.Module = class extends Module {
  // The first one may be another's, as of a filter: it has its options.
  constructor(...of: ConstructorParameters<typeof Module>) {
    WebAssembly.Module = Module
    setFlagsFromString(`--wasm-tiering-budget=${100 * usualBudget}`)
    try {
      super(...of)
    } finally {
      setFlagsFromString(`--wasm-tiering-budget=${usualBudget}`)
    }
  }
}
