import { join } from 'node:path'
import t from 'tap'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import type { ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  collection,
  head,
  type json,
  keyOf,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { recordsIn, refusingDisk } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { open } from '../log/opened.ts'

const partition = { identity: nodeIdentity, representation: 'protobuf' as typeof json }

/** A list without the object, and a put of it in another encoding that the disk refuses. */
async function missed(store: ObjectStore, before?: number): Promise<void> {
  await replace(store, collection({ partition }), head(10), [object('a', 1)])
  if (before !== undefined) await store.put(keyOf('x'), pod, object('x', before))
  using _ = refusingDisk()
  await store.put(keyOf('x'), pod, object('x', 12)).then(undefined, () => undefined)
}

const isKnown = (store: ObjectStore): boolean =>
  [keyOf('x'), keyOf('x', { partition })].some((key) => store.get(key) !== undefined)

void t.test('what was missed is not absent by a list in another encoding', async (t) => {
  for (const before of [undefined, 11]) {
    await using store = await open(rootFolder(t))
    await missed(store, before)
    t.notOk(isKnown(store), before === undefined ? 'the first of its encoding' : 'the only one')
  }
})

void t.test('nor once the log was written anew, and after a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await missed(store, 11)
    // The disk that failed is well.
    while (store.missed > 0)
      await store.put(keyOf('y'), pod, object('y', 20)).catch(() => undefined)
    t.ok(recordsIn(join(directory, 'cache')).some(({ record }) => record.kind === 'scope'))
  }
  await using store = await open(directory)
  t.notOk(isKnown(store))
  await replace(store, collection({ partition }), head(13), [object('a', 1)])
  t.equal(store.get(keyOf('x', { partition })), 'absent', 'a newer list knows')
})

void t.test('of another cluster nothing is missed', async (t) => {
  await using store = await open(rootFolder(t))
  await missed(store)
  while (store.missed > 0) await store.drop().catch(() => undefined)
  await store.drop()
  await replace(store, collection({ partition }), head(5), [object('a', 1)])
  t.equal(store.get(keyOf('x', { partition })), 'absent')
})
