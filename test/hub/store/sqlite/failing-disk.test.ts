import t, { type Test } from 'tap'
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { noDisk, smallDisk } from '../../../kit/disk.ts'
import { open, pods, faults } from './opened.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

const skip = noDisk()

t.beforeEach(() => faults.splice(0))

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
  const alive = setInterval(() => undefined, 60_000)
  t.teardown(() => clearInterval(alive))
  return { recovered: promise, onRecovered: resolve }
}

const key = { sealingKey: Buffer.alloc(32, 1) }

for (const { left, files } of [
  { left: 'a store that was closed', files: ['objects.db'] },
  { left: 'a crash', files: ['objects.db', 'objects.db-wal', 'objects.db-shm'] },
]) {
  void t.test(
    `on a read-only disk the data that ${left} left is served, and written later`,
    { skip },
    async (t) => {
      const disk = smallDisk(t, 8)
      const elsewhere = rootFolder(t)
      const cache = join(disk.path, 'cache')
      mkdirSync(cache, { mode: 0o700 })
      {
        const store = await open(elsewhere, key)
        await fillStore(store)
        if (files.length === 1) await store[Symbol.asyncDispose]()
        for (const name of files) copyFileSync(join(elsewhere, 'cache', name), join(cache, name))
        await store[Symbol.asyncDispose]()
      }
      disk.readOnly()
      const { recovered, onRecovered } = recovery(t)
      await using store = await open(disk.path, { ...key, onRecovered })
      t.ok(faults.includes('writer'))
      readable(t, store)
      await t.rejects(store.put(keyOf('c'), pod, object('c', 9)), { code: 'STORE_FAILURE' })
      await t.rejects(replace(store, collection(), head(7), [object('a', 7)]), {
        code: 'STORE_FAILURE',
      })
      await t.rejects(replace(store, collection({ labelSelector: 'a' }), head(7)), {
        code: 'STORE_FAILURE',
      })
      disk.writable()
      await recovered
      t.equal(got(store, keyOf('single')), 'single at 6')
      t.equal(store.list(collection()), undefined, 'it missed a list')
      await replace(store, collection(), head(8), [object('a', 8)])
      t.strictSame(listed(store, collection()), ['a at 8'])
      await store.put(keyOf('c'), pod, object('c', 9))
      t.equal(got(store, keyOf('c')), 'c at 9')
      t.notOk(faults.includes('set-aside'))
    },
  )
}

void t.test(
  'a node that starts with its disk full serves what it has, and goes on with room',
  { skip },
  async (t) => {
    const disk = smallDisk(t, 4)
    {
      await using store = await open(disk.path, key)
      await fillStore(store)
    }
    disk.fill()
    const { recovered, onRecovered } = recovery(t)
    await using store = await open(disk.path, { ...key, onRecovered })
    readable(t, store)
    await t.rejects(replace(store, collection(), head(900), pods(100, 100, 50_000)))
    disk.empty()
    await recovered
    await replace(store, collection(), head(7), [object('a', 7)])
    t.strictSame(listed(store, collection()), ['a at 7'])
  },
)

void t.test(
  'a disk that fills up fails writes, and recovers without another one',
  { skip },
  async (t) => {
    const disk = smallDisk(t, 4)
    const { recovered, onRecovered } = recovery(t)
    await using store = await open(disk.path, { ...key, onRecovered })
    await fillStore(store)
    disk.fill()
    const large = Array.from({ length: 20 }, (_, index) =>
      store.put(
        keyOf(`large-${index}`),
        pod,
        object(`large-${index}`, 9, { bytes: Buffer.alloc(100_000) }),
      ),
    )
    await t.rejects(Promise.all(large), { code: 'STORE_FAILURE' })
    await Promise.allSettled(large)
    readable(t, store)
    disk.empty()
    await recovered
    readable(t, store)
    await store.put(keyOf('c'), pod, object('c', 9))
  },
)

void t.test('a store starts empty on a disk that takes no writes', { skip }, async (t) => {
  const disk = smallDisk(t, 4)
  disk.readOnly()
  const { recovered, onRecovered } = recovery(t)
  await using store = await open(disk.path, { ...key, onRecovered })
  t.equal(store.list(collection()), undefined)
  t.equal(store.get(keyOf('a')), undefined)
  disk.writable()
  await recovered
  await fillStore(store)
  readable(t, store)
  t.ok(readdirSync(join(disk.path, 'cache')).includes('objects.db'))
})
