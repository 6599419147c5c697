import t from 'tap'
import { join } from 'node:path'
import {
  changed,
  collection,
  head,
  listed,
  object,
  replace,
} from '../../../contracts/object-store.ts'
import { damageBodies } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { open, pods, secrets } from './opened.ts'

void t.test('what lists read again is as it was read, until it changes', async (t) => {
  const directory = rootFolder(t)
  for (const key of [collection(), secrets]) {
    await using store = await open(directory)
    await replace(store, key, head(5), [object('a', 1), object('b', 2)])
    for (const _ of ['once', 'twice']) listed(store, key)
    damageBodies(join(directory, 'cache'), 'a')
    t.strictSame(listed(store, key), ['a at 1', 'b at 2'], 'it was undamaged')
    await store.apply(key, [changed('MODIFIED', object('b', 6))])
    t.strictSame(listed(store, key), ['a at 1', 'b at 6'])
  }
  await using store = await open(directory)
  for (const key of [collection(), secrets])
    t.throws(() => listed(store, key), { code: 'STORE_FAILURE' })
})

void t.test('of more than memory is meant for some is read from the disk', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  const all = pods(20, 10, 1 << 20)
  await replace(store, collection(), head(50), all)
  for (let times = 0; times < 20; times += 1)
    t.equal([...(store.list(collection())?.batches ?? [])].flat().length, all.length)
  for (const { name } of all) damageBodies(join(directory, 'cache'), name)
  t.throws(() => [...(store.list(collection())?.batches ?? [])], { code: 'STORE_FAILURE' })
})
