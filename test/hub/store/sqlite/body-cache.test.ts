import t from 'tap'
import { BodyCache } from '../../../../src/hub/store/sqlite/body-cache.ts'
import type { ObjectRow } from '../../../../src/hub/store/sqlite/object-row.ts'

const stored = (with_: Partial<ObjectRow> = {}): ObjectRow => ({
  id: 7,
  namespace: 'default',
  name: 'a',
  uid: 'u',
  resourceVersion: '40',
  size: 5,
  ...with_,
})
const bytes = new TextEncoder().encode('bytes')

void t.test('cached bytes belong to one version of one object', async (t) => {
  const kept = new BodyCache()
  kept.set(1, stored(), bytes)
  t.equal(kept.get(1, stored()), bytes)
  for (const other of [
    { id: 8 },
    { namespace: 'other' },
    { name: 'b' },
    { uid: 'v' },
    { resourceVersion: '41' },
    { size: 6 },
  ]) {
    t.equal(kept.get(1, stored(other)), undefined, JSON.stringify(other))
  }
  t.equal(kept.get(2, stored()), undefined, 'nor in another scope')
  kept.clear()
  t.equal(kept.get(1, stored()), undefined)
})

void t.test('an object without a version is read anew each time', async (t) => {
  const kept = new BodyCache()
  const nameless = stored({ resourceVersion: '' })
  kept.set(1, nameless, bytes)
  t.equal(kept.get(1, nameless), undefined)
})

void t.test('at most 16 MiB are cached, the latest, and nothing huge', async (t) => {
  const kept = new BodyCache()
  const megabyte = new Uint8Array(1024 * 1024)
  for (let id = 0; id < 20; id++) kept.set(1, stored({ id }), megabyte)
  const held = Array.from({ length: 20 }, (_, id) => kept.get(1, stored({ id })) !== undefined)
  t.equal(held.filter(Boolean).length, 15)
  t.strictSame([held[0], held[19]], [false, true])
  kept.set(1, stored({ id: 99 }), new Uint8Array(3 * 1024 * 1024))
  t.equal(kept.get(1, stored({ id: 99 })), undefined)
})
