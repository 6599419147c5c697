import t, { type Test } from 'tap'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import type { WatchEvent } from '../../../../src/api/codec/watch.ts'
import type { ApiObject } from '../../../../src/api/kube/object.ts'
import { StoreFailure, type ObjectStore, type StoredList } from '../../../../src/hub/store/store.ts'
import {
  changed,
  collection,
  head,
  keyOf,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { database, fileOf, open, faults } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const api = { identity: nodeIdentity, path: '/api', representation: '' }

void t.test('a damaged document is unknown, reported once, and healed by the next', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  const document = { mediaType: 'text/plain', body: Buffer.from('whole') }
  using db = database(directory)
  for (const round of [1, 2]) {
    await store.putDocument(api, document)
    t.equal(Buffer.from(store.document(api)!.body).toString(), 'whole')
    db.exec("UPDATE document SET body = x'00'")
    t.equal(store.document(api), undefined)
    t.equal(store.document(api), undefined)
    t.equal(faults.length, round)
  }
  t.strictSame(new Set(faults), new Set(['damaged']))
})

void t.test('a version that the disk has changed is never served', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  using db = database(directory)
  await replace(store, collection(), head(5), [object('a', 1)])
  db.exec("UPDATE collection SET version = '7'")
  t.equal(store.list(collection()), undefined)
  t.equal(store.get(keyOf('never')), undefined, 'nor does it say what is absent')
  await store.apply(collection(), [changed('MODIFIED', object('a', 8))])
  t.equal(store.list(collection()), undefined, 'an event does not mend it')
  t.strictSame(faults, ['damaged'], 'reported once')
  await replace(store, collection(), head(9), [object('a', 8)])
  t.equal(store.list(collection())?.resourceVersion, '9')
  await store.apply(collection(), [changed('MODIFIED', object('a', 10))])
  t.equal(store.list(collection())?.resourceVersion, '10')
})

/** Numbers that look random and are the same for a seed (Mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const textOf = (name: string): string => `${name} `.repeat(40)
const names = Array.from({ length: 60 }, (_, index) => `pod-${index}`)
const secrets = collection({ gvr: { group: '', version: 'v1', resource: 'secrets' } })

/** What of a list can be read before it breaks off. */
function readable(list: StoredList | undefined): ApiObject[] {
  const objects: ApiObject[] = []
  try {
    for (const batch of list?.batches ?? []) objects.push(...batch)
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
  }
  return objects
}

/** What of the events after version 100 can be read before it breaks off. */
function retold(store: ObjectStore): string[] {
  const events: string[] = []
  const changes = store.changes(collection(), '100')
  if (typeof changes !== 'object') return events
  try {
    for (const batch of changes.batches)
      for (const { type, object, previous } of batch)
        events.push(`${type} ${textOfBytes(object)} ${previous ? textOfBytes(previous) : ''}`)
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
  }
  return events
}

const textOfBytes = ({ bytes }: ApiObject): string => Buffer.from(bytes).toString()

/** A store gets what is there, and that some of it has changed or gone. */
const changes = names
  .slice(0, 30)
  .map((name, index): WatchEvent & { type: 'MODIFIED' | 'DELETED' } => ({
    type: index % 3 === 0 ? 'DELETED' : 'MODIFIED',
    object: object(name, 101 + index, { bytes: Buffer.from(textOf(name)) }),
  }))

/**
 * What a store serves, each with what it is served as; fails where that is not what was stored
 * under this name.
 */
function checkServed(t: Test, store: ObjectStore, where: string): void {
  for (const key of [collection(), secrets]) {
    const list = store.list(key)
    if (list && !['100', '130', '200'].includes(list.resourceVersion))
      t.fail(`${where}: at ${list.resourceVersion}`)
    for (const { name, bytes } of readable(list))
      if (Buffer.from(bytes).toString() !== textOf(name)) t.fail(`${where}: ${name} in a list`)
  }
  for (const name of ['single', ...names]) {
    const found = store.get(keyOf(name))
    if (typeof found !== 'object') continue
    const text = Buffer.from(found.object.bytes).toString()
    if (text !== textOf(name)) t.fail(`${where}: ${name} by name`)
  }
  const expected = changes.map(({ type }, at) => {
    const text = textOf(names[at] ?? '')
    return `${type} ${text} ${text}`
  })
  const events = retold(store)
  if (events.length > 0 && events.join() !== expected.slice(0, events.length).join())
    t.fail(`${where}: ${events.length} events`)
  const document = store.document(api)
  if (document && Buffer.from(document.body).toString() !== textOf('api')) t.fail(`${where}: api`)
}

void t.test('whichever bit flips, a store opens and serves nothing that is wrong', async (t) => {
  const whole = t.testdir()
  {
    await using store = await open(whole)
    const objects = names.map((name, index) =>
      object(name, index + 1, { bytes: Buffer.from(textOf(name)) }),
    )
    await replace(store, collection(), head(100), objects)
    await store.apply(collection(), changes)
    await replace(store, secrets, head(100), objects.slice(0, 10))
    checkServed(t, store, 'before')
    t.equal(retold(store).length, changes.length)
    await store.put(
      keyOf('single'),
      pod,
      object('single', 7, { bytes: Buffer.from(textOf('single')) }),
    )
    await store.putDocument(api, { mediaType: 'text/plain', body: Buffer.from(textOf('api')) })
  }
  const seed = Number(process.env['SEED'] ?? 1)
  const random = seeded(seed)
  const bytes = readFileSync(fileOf(whole))
  const pages = bytes.byteLength / 2048
  t.ok(pages > 10)
  for (let page = 0; page < pages; page += 1) {
    const at = page * 2048 + random(2048)
    const bit = 1 << random(8)
    const where = `seed ${seed}, byte ${at}, bit ${bit}`
    const directory = join(whole, `flipped-${page}`)
    mkdirSync(join(directory, 'cache'), { recursive: true })
    copyFileSync(join(whole, 'store.key'), join(directory, 'store.key'))
    const flipped = Buffer.from(bytes)
    flipped[at]! ^= bit
    writeFileSync(fileOf(directory), flipped)
    try {
      await using store = await open(directory)
      checkServed(t, store, where)
      await replace(store, collection(), head(200), [
        object('single', 200, { bytes: Buffer.from(textOf('single')) }),
      ]).catch(() => undefined)
      checkServed(t, store, `${where}, written`)
    } catch (cause) {
      t.fail(`${where}: ${String(cause)}`)
    }
  }
})
