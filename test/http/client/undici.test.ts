import { cachedDataVersionTag } from 'node:v8'
import t from 'tap'
import { Client, Pool, buildConnector } from 'undici'
import { undici } from '../../../src/http/client/undici.ts'

void t.test('the private modules of undici are what the package exports', async (t) => {
  const moved = 'undici has moved it: find its path anew in src/http/client/undici.ts'
  t.equal(undici.Client.name, Client.name, moved)
  t.equal(undici.Pool.name, Pool.name, moved)
  t.equal(undici.buildConnector.name, buildConnector.name, moved)
  for (const own of [undici.Client, undici.Pool]) t.ok('dispatch' in own.prototype, 'it dispatches')
})

/** A module that imports `length` of V8's own functions of strings. */
const usingLength = Buffer.concat([
  Buffer.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 6, 1, 0x60, 1, 0x6f, 1, 0x7f, 2, 25, 1, 14),
  Buffer.from('wasm:js-string\x06length\0\0'),
])

void t.test('to make a module of WebAssembly leaves V8’s flags as they were', (t) => {
  // Code that is kept under other flags is refused, and the code that Node has of its own modules.
  const before = cachedDataVersionTag()
  const importing = new WebAssembly.Module(usingLength, { builtins: ['js-string'] })
  t.equal(cachedDataVersionTag(), before, 'its own budget has changed in this Node: see undici.ts')
  t.doesNotThrow(() => new WebAssembly.Instance(importing), 'its options count')
  t.end()
})
