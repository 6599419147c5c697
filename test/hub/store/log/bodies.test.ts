import t from 'tap'
import { join } from 'node:path'
import { listItems } from '../../../../src/api/codec/render.ts'
import { objectRepresentation } from '../../../../src/api/request/representation.ts'
import { joined } from '../../../../src/base/bytes.ts'
import {
  changed,
  collection,
  head,
  listed,
  object,
  objectsOf,
  replace,
} from '../../../contracts/object-store.ts'
import { damageBodies } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { open, pods, secrets } from './opened.ts'

void t.test('what was read undamaged is served until the disk is read again', async (t) => {
  const directory = rootFolder(t)
  for (const key of [collection(), secrets]) {
    await using store = await open(directory)
    await replace(store, key, head(5), [object('a', 1), object('b', 2)])
    for (const _ of ['once', 'twice']) t.strictSame(listed(store, key), ['a at 1', 'b at 2'])
    await store.apply(key, [changed('MODIFIED', object('b', 6))])
    for (const _ of ['once', 'twice']) t.strictSame(listed(store, key), ['a at 1', 'b at 6'])
    damageBodies(join(directory, 'cache'), 'a')
    t.strictSame(listed(store, key), ['a at 1', 'b at 6'])
  }
  await using store = await open(directory)
  for (const key of [collection(), secrets])
    t.throws(() => listed(store, key), { code: 'STORE_FAILURE' })
})

void t.test('a list that is read again has the bytes of its objects', async (t) => {
  await using store = await open(rootFolder(t))
  for (const encoding of ['json', 'protobuf'] as const) {
    const { key: representation } = objectRepresentation(encoding)
    const key = collection({ partition: { ...collection().partition, representation } })
    await replace(store, key, head(2_000), pods(30, 10, 10_000))
    const sent = (): string => {
      const parts = [...(store.list(key)?.batches ?? [])].map(
        ({ objects, bytes }) => bytes ?? listItems(encoding, objects),
      )
      return parts
        .map((each) => joined(each).toString('latin1'))
        .join(encoding === 'json' ? ',' : '')
    }
    const first = sent()
    for (const _ of ['kept', 'from memory']) t.equal(sent(), first)
    const steps = [
      changed('MODIFIED', pods(4, 2_010, 9_000)[3]!),
      changed('ADDED', object('pod-0004-between', 2_020)),
      changed('DELETED', { ...pods(1, 10)[0]!, resourceVersion: '2030' }),
    ]
    for (const step of steps) {
      await store.apply(key, [step])
      const objects = objectsOf(store.list(key)!)
      const wanted = joined(listItems(encoding, objects)).toString('latin1')
      for (const _ of ['read', 'kept', 'from memory']) t.ok(sent() === wanted, step.type)
    }
    t.equal(listed(store, key)?.length, 30)
  }
})

void t.test('of more than memory is meant for some is read from the disk', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  const all = pods(20, 10, 1 << 20)
  await replace(store, collection(), head(50), all)
  for (let times = 0; times < 20; times += 1)
    t.equal(listed(store, collection())?.length, all.length)
  for (const { name } of all) damageBodies(join(directory, 'cache'), name)
  t.throws(() => listed(store, collection()), { code: 'STORE_FAILURE' })
})
