import t from 'tap'
import {
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { faults, open, pods } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const maxBytes = 4 << 20
const nodes = collection({ gvr: { group: '', version: 'v1', resource: 'nodes' } })

void t.test('what there is no room for stays unknown, whatever is written next', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { maxBytes })
    await replace(store, nodes, head(5), [object('n', 1)])
    await store.put(keyOf('single'), pod, object('single', 6))
    await replace(store, collection(), head(7), pods(36, 2, 100_000))
    const large = object('n', 8, { bytes: Buffer.alloc(1_500_000) })
    const refused = store.apply(nodes, [changed('MODIFIED', large)])
    const forgotten = store.forget(keyOf('single'))
    await t.rejects(refused, { code: 'STORE_FAILURE' })
    await forgotten
  }
  faults.splice(0)
  await using store = await open(directory, { maxBytes })
  t.equal(store.list(nodes), undefined, 'after a restart, too')
  t.equal(got(store, keyOf('single')), 'absent')
  t.equal(listed(store, collection())?.length, 36)
  t.strictSame(faults, [], 'no record is damaged')
})

void t.test('what is refused while the store closes is unknown after a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { maxBytes })
    await replace(store, nodes, head(5), [object('n', 1), object('m', 2)])
    await replace(store, collection(), head(7), pods(36, 2, 100_000))
    const large = object('n', 8, { bytes: Buffer.alloc(1_500_000) })
    const events = [large, object('m', 9)].map((each) =>
      store.apply(nodes, [changed('MODIFIED', each)], { since: '5' }),
    )
    void Promise.allSettled(events)
  }
  await using store = await open(directory, { maxBytes })
  t.equal(store.list(nodes), undefined)
})

void t.test('lists of many small objects stay below the maximal size, too', async (t) => {
  await using store = await open(rootFolder(t), { maxBytes })
  const all = pods(500, 1)
  let most = 0
  for (let round = 0; round < 300; round += 1) {
    all[0] = object('pod-0000', 1_000 + round)
    await replace(store, collection(), head(1_000 + round), all)
    most = Math.max(most, store.bytes)
  }
  // The record of one list may still be written.
  t.ok(most < maxBytes + (64 << 10), `${most} bytes`)
})
