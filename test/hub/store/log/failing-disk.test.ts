import t, { type Test } from 'tap'
import { mkdirSync, cpSync } from 'node:fs'
import { join } from 'node:path'
import { keepProcessAlive } from '../../../../src/base/clock.ts'
import { Segment } from '../../../../src/hub/store/log/segments.ts'
import { tokenHolder } from '../../../../src/api/request/identity.ts'
import type { ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  json,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { noDisk, smallDisk } from '../../../kit/disk.ts'
import { refusingDisk } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { faults, open, pods, turn } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const skip = noDisk()
const other = collection({ labelSelector: 'app=x' })
const key = { sealingKey: Buffer.alloc(32, 1) }

async function fillStore(store: ObjectStore): Promise<void> {
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  await store.put(keyOf('single'), pod, object('single', 6))
}

function readable(t: Test, store: ObjectStore): void {
  t.strictSame(listed(store, collection()), ['a at 1', 'b at 2'])
  t.equal(got(store, keyOf('single')), 'single at 6')
  t.equal(store.get(keyOf('never')), 'absent')
}

/** Keeps the process alive: nothing of a store that waits for its disk does. */
function recovery(t: Test): { recovered: Promise<void>; onRecovered: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const alive = keepProcessAlive()
  t.teardown(() => alive[Symbol.dispose]())
  return { recovered: promise, onRecovered: resolve }
}

void t.test('a refused write changes nothing, and leaves its collection unknown', async (t) => {
  const directory = rootFolder(t)
  await using store = await open(directory)
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  await replace(store, other, head(5), [object('a', 1)])
  {
    using _ = refusingDisk()
    const refused = store.apply(collection(), [changed('MODIFIED', object('a', 6))])
    await t.rejects(refused, { code: 'STORE_FAILURE' })
  }
  t.equal(store.list(collection()), undefined)
  t.equal(store.missed, 2, 'the collection, and the object')
  t.equal(store.get(keyOf('never')), undefined, 'an unknown collection knows no absence')
  t.equal(store.get(keyOf('b')), undefined, 'nor what it held')
  t.strictSame(listed(store, other), ['a at 1'], 'others go on')
  await store.apply(collection(), [changed('MODIFIED', object('a', 9))])
  t.equal(store.list(collection()), undefined, 'events do not make it known again')
  await replace(store, collection(), head(10), [object('a', 9), object('b', 2)])
  t.strictSame(listed(store, collection()), ['a at 9', 'b at 2'])
  t.equal(store.list(collection())?.changedAt, '10')
  t.equal(store.missed, 0)
  t.strictSame(faults, ['write'])
})

void t.test('a collection that missed a write is not served after a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
    {
      using _ = refusingDisk()
      await t.rejects(store.apply(collection(), [changed('DELETED', object('a', 6))]))
    }
    await store.put(keyOf('w'), pod, object('w', 8))
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined)
  t.equal(store.get(keyOf('a')), undefined)
  t.equal(got(store, keyOf('w')), 'w at 8')
})

void t.test('a list that cannot be written is not committed in part', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(5), [object('a', 1)])
  {
    await using list = store.replace(collection())
    await list.add({ objects: [object('a', 6)] })
    {
      using _ = refusingDisk()
      await list.add({ objects: [object('b', 7)] }).catch(() => undefined)
      await store.put(keyOf('c'), pod, object('c', 1)).catch(() => undefined)
    }
    await t.rejects(list.commit(head(8)), { code: 'STORE_FAILURE' })
  }
  t.equal(store.list(collection()), undefined)
  await replace(store, collection(), head(8), [object('a', 6), object('b', 7)])
  t.strictSame(listed(store, collection()), ['a at 6', 'b at 7'])
})

void t.test('a list under way does not hide what was missed meanwhile', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(5), [object('a', 1)])
  await using list = store.replace(collection())
  await list.add({ objects: [object('a', 1)] })
  {
    using _ = refusingDisk()
    await t.rejects(store.apply(collection(), [changed('DELETED', object('a', 7))]))
  }
  await t.rejects(list.commit(head(6)), { code: 'STORE_FAILURE' })
  t.equal(store.list(collection()), undefined)
})

void t.test('what is removed is gone from memory, whether or not the disk takes it', async (t) => {
  const guest = { identity: tokenHolder('guest'), representation: json }
  const what = { of: 'collections', gvr: collection().gvr, namespace: '' } as const
  for (const isFailingAlready of [false, true]) {
    await using store = await open(rootFolder(t))
    for (const name of ['a', 'b', 'c']) await store.put(keyOf(name), pod, object(name, 1))
    await replace(store, collection({ partition: guest }), head(5), [object('a', 1)])
    using _ = refusingDisk()
    if (isFailingAlready) await t.rejects(store.put(keyOf('c'), pod, object('c', 2)))
    await t.rejects(store.forget(keyOf('a')), { code: 'STORE_FAILURE' })
    t.equal(store.get(keyOf('a')), undefined, 'an object that does not exist')
    await t.rejects(store.withdraw(guest.identity, what), { code: 'STORE_FAILURE' })
    t.equal(store.version(collection({ partition: guest })), undefined, 'what is refused')
    t.equal(got(store, keyOf('b')), 'b at 1')
    await t.rejects(store.drop(), { code: 'STORE_FAILURE' })
    t.equal(store.get(keyOf('b')), undefined, 'all of another cluster')
  }
})

void t.test('what was removed while the disk failed stays away once it is well', async (t) => {
  const { recovered, onRecovered } = recovery(t)
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { onRecovered })
    for (const name of ['a', 'b']) await store.put(keyOf(name), pod, object(name, 1))
    {
      using _ = refusingDisk()
      await t.rejects(store.forget(keyOf('a')))
    }
    await recovered
    t.equal(store.get(keyOf('a')), undefined)
  }
  await using store = await open(directory)
  t.equal(store.get(keyOf('a')), undefined)
  t.equal(got(store, keyOf('b')), 'b at 1')
})

void t.test('of a state that was refused no older one is shown, nor is it absent', async (t) => {
  const { recovered, onRecovered } = recovery(t)
  await using store = await open(rootFolder(t), { onRecovered })
  await store.put(keyOf('record'), pod, object('record', 6))
  await store.put(keyOf('same'), pod, object('same', 8))
  await replace(store, collection(), head(7), [object('member', 6)])
  await replace(store, other, head(7), [object('member', 6), object('gone', 6)])
  {
    using _ = refusingDisk()
    for (const name of ['record', 'member', 'new'])
      await t.rejects(store.put(keyOf(name), pod, object(name, 8)), { code: 'STORE_FAILURE' })
    await store.put(keyOf('same'), pod, object('same', 8)).catch(() => undefined)
  }
  for (const name of ['record', 'member', 'new']) t.equal(store.get(keyOf(name)), undefined, name)
  t.equal(got(store, keyOf('same')), 'same at 8', 'what is stored already missed nothing')
  t.strictSame(listed(store, collection()), ['member at 6'], 'a list at its version')
  await recovered
  await replace(store, collection(), head(9))
  for (const name of ['record', 'new']) t.equal(store.get(keyOf(name)), 'absent', name)
})

void t.test('of events that were refused the objects are unknown, too', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, other, head(5), [object('a', 1), object('b', 2)])
  for (const name of ['a', 'b', 'c']) await store.put(keyOf(name), pod, object(name, 3))
  {
    using _ = refusingDisk()
    const events = [changed('MODIFIED', object('a', 6)), changed('DELETED', object('b', 7))]
    await t.rejects(store.apply(other, events), { code: 'STORE_FAILURE' })
  }
  t.strictSame(
    ['a', 'b', 'c'].map((name) => got(store, keyOf(name))),
    [undefined, undefined, 'c at 3'],
  )
})

void t.test(
  'what a list or watch with a selector has missed is not absent by an older list',
  async (t) => {
    await using store = await open(rootFolder(t))
    await replace(store, collection(), head(10), [object('a', 1)])
    await replace(store, other, head(11), [object('x', 11)])
    t.equal(got(store, keyOf('x')), 'x at 11')
    {
      using _ = refusingDisk()
      await t.rejects(store.apply(other, [changed('MODIFIED', object('x', 12))]))
    }
    t.equal(store.get(keyOf('x')), undefined)
    await store.apply(collection(), [bookmark(11)])
    t.equal(store.get(keyOf('x')), undefined, 'it was changed at 12')
    await store.apply(collection(), [bookmark(12)])
    t.equal(store.get(keyOf('x')), 'absent')
  },
)

void t.test('of two lists that begin with nothing the older does not win', async (t) => {
  await using store = await open(rootFolder(t))
  await using older = store.replace(collection())
  await older.add({ objects: [object('a', 1)] })
  await replace(store, collection(), head(20), [object('a', 19)])
  await store.apply(collection(), [changed('DELETED', object('a', 25))])
  {
    using _ = refusingDisk()
    await t.rejects(store.apply(collection(), [changed('ADDED', object('b', 26))]))
  }
  await t.rejects(older.commit(head(7)), { code: 'STORE_FAILURE' })
  t.equal(store.list(collection()), undefined)
})

void t.test('a disk that recovers is found without a write', async (t) => {
  const { recovered, onRecovered } = recovery(t)
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { onRecovered })
    await replace(store, collection(), head(5), [object('a', 1)])
    {
      using _ = refusingDisk()
      await t.rejects(store.apply(collection(), [changed('DELETED', object('a', 6))]))
    }
    await recovered
  }
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined, 'and the missed write is recorded')
})

void t.test('what a failed sync may have lost is written anew', async (t) => {
  const { recovered, onRecovered } = recovery(t)
  const directory = rootFolder(t)
  {
    await using store = await open(directory, { onRecovered })
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    const sync = Reflect.get(Segment.prototype, 'sync') as Segment['sync']
    Segment.prototype.sync = () => Promise.reject(new Error('EIO'))
    await t.rejects(store.apply(collection(), [changed('DELETED', object('b', 6))]))
    Segment.prototype.sync = sync
    await store.put(keyOf('c'), pod, object('c', 7))
    await recovered
    await replace(store, collection(), head(8), [object('a', 1)])
  }
  await using store = await open(directory)
  t.strictSame(listed(store, collection()), ['a at 1'])
  t.equal(got(store, keyOf('c')), 'absent', 'which the newer list lacks')
  t.notOk(faults.includes('damaged'))
})

void t.test('what was written during a sync that fails is not durable by the next', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  const sync = Reflect.get(Segment.prototype, 'sync') as Segment['sync']
  t.teardown(() => (Segment.prototype.sync = sync))
  const [begun, failed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  Segment.prototype.sync = async () => {
    begun.resolve()
    await failed.promise
    throw new Error('EIO')
  }
  const deletions = ['a', 'b'].map(async (name, at) => {
    if (at > 0) await begun.promise
    await store.apply(collection(), [changed('DELETED', object(name, 6 + at))])
  })
  await begun.promise
  await store.apply(collection(), [changed('MODIFIED', object('b', 8))])
  failed.resolve()
  for (const each of deletions) await t.rejects(each, { code: 'STORE_FAILURE' })
})

void t.test('a body that cannot be read holds nothing up', async (t) => {
  await using store = await open(rootFolder(t))
  const bytes = Buffer.alloc(777)
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2, { bytes })])
  await replace(store, other, head(5), [object('a', 1)])
  const read = Reflect.get(Segment.prototype, 'read') as Segment['read']
  t.teardown(() => (Segment.prototype.read = read))
  Segment.prototype.read = function (this: Segment, offset, length) {
    if (length === bytes.length) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    return read.call(this, offset, length)
  }
  {
    using _ = refusingDisk()
    await t.rejects(store.put(keyOf('c'), pod, object('c', 6)))
  }
  await store.put(keyOf('c'), pod, object('c', 6))
  t.strictSame(listed(store, other), ['a at 1'])
  Segment.prototype.read = read
  t.equal(listed(store, collection())?.length, 2, 'nor is it given up: it can be read again')
})

void t.test('what follows a failed sync waits until the log is written anew', async (t) => {
  const [directory, killed] = [rootFolder(t), rootFolder(t)]
  {
    await using store = await open(directory, { ...key, maxBytes: 4 << 20 })
    await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
    // Garbage, until the log is being written anew.
    const put = async (version: number): Promise<void> => {
      await store.put(keyOf('x'), pod, object('x', version, { bytes: Buffer.alloc(20_000) }))
      for (let turns = 0; turns < 5; turns += 1) await turn()
    }
    for (let version = 10; version < 24; version += 1) await put(version)
    await store.apply(collection(), [changed('MODIFIED', object('a', 26))])
    const sync = Reflect.get(Segment.prototype, 'sync') as Segment['sync']
    t.teardown(() => (Segment.prototype.sync = sync))
    let hasFailed = false
    Segment.prototype.sync = async () => {
      hasFailed = true
      Segment.prototype.sync = sync
      throw new Error('EIO')
    }
    for (let version = 30; !hasFailed; version += 1) await put(version)
    await replace(store, collection(), head(900), [object('a', 26), object('b', 2)])
    cpSync(join(directory, 'cache'), join(killed, 'cache'), { recursive: true })
  }
  t.ok(faults.includes('write'), 'it is said')
  await using store = await open(killed, key)
  t.strictSame(listed(store, collection()), ['a at 26', 'b at 2'])
})

/** From now on a sync begins when the result is resolved. */
function slowSync(t: Test): PromiseWithResolvers<void> {
  const sync = Reflect.get(Segment.prototype, 'sync') as Segment['sync']
  t.teardown(() => (Segment.prototype.sync = sync))
  const slow = Promise.withResolvers<void>()
  Segment.prototype.sync = async function (this: Segment) {
    await slow.promise
    return sync.call(this)
  }
  return slow
}

void t.test('an event does not wait for a slow sync', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(5), [object('a', 1), object('b', 2)])
  const slow = slowSync(t)
  let isDurable = false
  const deletion = store
    .apply(collection(), [changed('DELETED', object('b', 6))])
    .then(() => (isDurable = true))
  await store.apply(collection(), [changed('MODIFIED', object('a', 7))])
  await store.apply(collection(), [changed('MODIFIED', object('a', 8))])
  t.notOk(isDurable, 'a deletion does')
  slow.resolve()
  await deletion
  t.strictSame(listed(store, collection()), ['a at 8'])
})

void t.test('a removal that repeats another waits for the same sync', async (t) => {
  await using store = await open(rootFolder(t))
  await store.put(keyOf('a'), pod, object('a', 1))
  const slow = slowSync(t)
  const answered: string[] = []
  const first = store.forget(keyOf('a')).then(() => answered.push('the first'))
  const again = store.forget(keyOf('a')).then(() => answered.push('the second'))
  // Later writes are answered meanwhile.
  for (const name of ['b', 'c']) await store.put(keyOf(name), pod, object(name, 2))
  t.strictSame(answered, [])
  slow.resolve()
  await Promise.all([first, again])
})

void t.test(
  'on a read-only disk what is there is served, and written later',
  { skip },
  async (t) => {
    const disk = smallDisk(t, 8)
    const elsewhere = rootFolder(t)
    mkdirSync(join(disk.path, 'cache'), { mode: 0o700 })
    {
      await using store = await open(elsewhere, key)
      await fillStore(store)
    }
    cpSync(join(elsewhere, 'cache'), join(disk.path, 'cache'), { recursive: true })
    disk.readOnly()
    const { recovered, onRecovered } = recovery(t)
    await using store = await open(disk.path, { ...key, onRecovered })
    readable(t, store)
    await t.rejects(store.put(keyOf('c'), pod, object('c', 9)), { code: 'STORE_FAILURE' })
    await t.rejects(replace(store, collection(), head(7), [object('a', 7)]), {
      code: 'STORE_FAILURE',
    })
    disk.writable()
    await recovered
    t.equal(got(store, keyOf('single')), 'single at 6')
    t.equal(store.list(collection()), undefined, 'it missed a list')
    await replace(store, collection(), head(8), [object('a', 8)])
    t.strictSame(listed(store, collection()), ['a at 8'])
    t.notOk(faults.includes('unusable'))
  },
)

void t.test('a disk that is full at the start or later is survived', { skip }, async (t) => {
  const disk = smallDisk(t, 4)
  {
    await using store = await open(disk.path, key)
    await fillStore(store)
  }
  disk.fill()
  const { recovered, onRecovered } = recovery(t)
  await using store = await open(disk.path, { ...key, onRecovered })
  readable(t, store)
  await t.rejects(replace(store, other, head(900), pods(100, 100, 50_000)))
  readable(t, store)
  disk.empty()
  await recovered
  readable(t, store)
  await replace(store, collection(), head(7), [object('a', 7)])
  t.strictSame(listed(store, collection()), ['a at 7'])
})

void t.test('a store starts empty on a disk that takes no writes', { skip }, async (t) => {
  const disk = smallDisk(t, 4)
  disk.readOnly()
  const { recovered, onRecovered } = recovery(t)
  await using store = await open(disk.path, { ...key, onRecovered })
  t.equal(store.list(collection()), undefined)
  disk.writable()
  await recovered
  await fillStore(store)
  readable(t, store)
})
