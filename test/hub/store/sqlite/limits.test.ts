import t from 'tap'
import { nodeIdentity } from '../../../../src/api/request/identity.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  keyOf,
  listed,
  object,
  pod,
  replace,
  eventsAfter,
} from '../../../contracts/object-store.ts'
import { database, open, faults, pods, turn } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const places = [{}, { gvr: { group: '', version: 'v1', resource: 'secrets' } }]

const names = [
  'n'.repeat(253),
  `it's "so"`,
  'a/../b',
  'a,b=c\\d',
  'a\0b',
  '名前 🙂 é',
  '*?[a]%_',
  '',
]

void t.test('any name is kept as it is, sealed or not, across a restart', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    for (const place of places) {
      await replace(store, collection(place), head(1), [object('z', 1)])
      for (const [at, name] of names.entries()) {
        await store.put(keyOf(name, place), pod, object(name, 2))
        const version = 10 + 2 * at
        await store.apply(collection(place), [changed('ADDED', object(name, version))])
        await store.apply(collection(place), [changed('MODIFIED', object(name, version + 1))])
      }
    }
  }
  await using store = await open(directory)
  for (const place of places) {
    const kept = names.map((name, at) => `${name} at ${11 + 2 * at}`)
    t.strictSame(
      names.map((name) => got(store, keyOf(name, place))),
      kept,
    )
    t.strictSame(listed(store, collection(place))?.toSorted(), [...kept, 'z at 1'].toSorted())
    t.strictSame(
      eventsAfter(store, collection(place), 1),
      names.flatMap((name, at) => [
        `ADDED ${name} at ${10 + 2 * at}`,
        `MODIFIED ${name} at ${11 + 2 * at} after ${name} at ${10 + 2 * at}`,
      ]),
    )
    const gone = names.map((name, at) => changed('DELETED', object(name, 100 + at)))
    await store.apply(collection(place), gone)
    t.strictSame(listed(store, collection(place)), ['z at 1'])
    for (const name of names) t.equal(got(store, keyOf(name, place)), 'absent')
  }
  t.strictSame(faults, [])
})

void t.test(
  'objects of no bytes and of three megabytes are kept, and empty documents',
  async (t) => {
    const directory = t.testdir()
    const sizes = [0, 1, 3 << 20]
    const of = (size: number, version: number) =>
      object(`of-${size}`, version, { bytes: Buffer.alloc(size, version) })
    const document = { identity: nodeIdentity, path: '/api', representation: '' }
    {
      await using store = await open(directory)
      for (const place of places) {
        const before = sizes.map((size) => of(size, 1))
        await replace(store, collection(place), head(1), before)
        const events = sizes.map((size) => changed('MODIFIED', of(size, 2)))
        await store.apply(collection(place), events)
      }
      await store.putDocument(document, { mediaType: '', body: new Uint8Array(0) })
    }
    await using store = await open(directory)
    for (const place of places) {
      t.strictSame(
        listed(store, collection(place))?.map((text) => text?.length),
        sizes,
      )
    }
    t.equal(store.document(document)?.body.byteLength, 0)
    t.strictSame(faults, [])
  },
)

void t.test('versions of more digits than a number has compare as what they are', async (t) => {
  const directory = t.testdir()
  const version = (n: number): string => String(18_446_744_073_709_551_000n + BigInt(n))
  const key = collection()
  {
    await using store = await open(directory)
    await replace(store, key, head(version(1)), [object('a', version(1))])
    await store.apply(key, [changed('MODIFIED', object('a', version(3)))])
    await store.apply(key, [changed('MODIFIED', object('a', version(2)))])
    await store.apply(key, [bookmark(version(9))])
  }
  await using store = await open(directory)
  t.strictSame(listed(store, key), [`a at ${version(3)}`])
  t.equal(store.version(key), version(9))
  t.strictSame(eventsAfter(store, key, version(1)), [
    `MODIFIED a at ${version(3)} after a at ${version(1)}`,
  ])
})

void t.test('a list that comes faster than it is written has to wait', async (t) => {
  const directory = t.testdir()
  await using store = await open(directory)
  const objects = pods(5, 1, 1 << 20)
  const incoming = store.replace(collection())
  using other = database(directory)
  other.exec('BEGIN IMMEDIATE')
  let added = false
  const adding = incoming.add({ objects }).then(() => {
    added = true
  })
  await turn()
  t.notOk(added, 'while nothing can be written')
  other.exec('COMMIT')
  await adding
  await incoming.commit(head(9))
  t.equal(listed(store, collection())?.length, 5)
})
