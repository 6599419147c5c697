import { tablesOf } from '../../../../src/hub/answers/keys.ts'
import { documentAt, putDocument } from '../../../../src/hub/store/document.ts'
import t from 'tap'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import type { WatchEvent } from '../../../../src/api/codec/watch.ts'
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
  objectStoreContract,
  pod,
  replace,
  texts,
} from '../../../contracts/object-store.ts'
import { Segment } from '../../../../src/hub/store/log/segments.ts'
import { logFilesIn, recordsIn } from '../../../kit/log-on-disk.ts'
import { faults, open, pods, secrets, turn } from './opened.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

t.beforeEach(() => faults.splice(0))

void t.test('keeps the contract', async (t) => objectStoreContract(t, open))

void t.test('files are closed to others, whatever the umask, also behind a link', async (t) => {
  const directory = rootFolder(t)
  const elsewhere = join(directory, 'larger-disk')
  mkdirSync(elsewhere)
  chmodSync(elsewhere, 0o755)
  symlinkSync(elsewhere, join(directory, 'cache'))
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  await using store = await open(directory)
  await replace(store, collection(), head(1), [object('a', 1)])
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)
  t.equal(mode(elsewhere), '700')
  for (const name of ['0000000001.log', 'lock.db'])
    t.equal(mode(join(elsewhere, name)), '600', name)
  t.equal(mode(join(directory, 'store.key')), '600')
})

/** A clock that stands still until the test moves it. */
function frozenClock(t: { teardown(act: () => void): void }, at = Date.parse('2026-01-01')) {
  const clock = { now: at }
  mock.method(Date, 'now', () => clock.now)
  t.teardown(() => mock.restoreAll())
  return clock
}

void t.test('after the clock was set back the next list corrects its time', async (t) => {
  const clock = frozenClock(t, Date.parse('2100-01-01'))
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(5), [object('a', 4)])
  await store.put(keyOf('a'), pod, object('a', 4))
  const toldAt = (): unknown[] => {
    const found = store.get(keyOf('a'))
    return [store.list(collection())!, typeof found === 'object' && found].map(
      (told) => told && told.confirmedAt,
    )
  }
  t.strictSame(toldAt(), [clock.now, clock.now])
  clock.now = Date.parse('2026-01-01')
  await store.apply(collection(), [bookmark(6)])
  t.strictSame(toldAt(), [clock.now, clock.now])
  clock.now += 60_000
  await replace(store, collection(), head(6), [object('a', 4)])
  t.equal(toldAt()[0], clock.now)
})

void t.test('lists and bookmarks that change nothing are seldom written', async (t) => {
  const directory = rootFolder(t)
  const clock = frozenClock(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 3)])
    await store.apply(collection(), [changed('MODIFIED', object('a', 6))])
    for (let minutes = 0; minutes < 60; minutes += 1) {
      clock.now += 60_000
      await replace(store, collection(), head(6), [object('a', 6)])
      await store.apply(collection(), [bookmark(6)], { since: '6' })
    }
    t.equal(store.list(collection())!.confirmedAt, clock.now)
    t.strictSame(listed(store, collection()), ['a at 6'])
  }
  const written = recordsIn(join(directory, 'cache')).filter(({ record }) => 'collection' in record)
  t.ok(written.length >= 5 && written.length <= 9, `${written.length} records in an hour`)
  await using store = await open(directory)
  t.ok(store.list(collection())!.confirmedAt > clock.now - 15 * 60_000)
})

void t.test('only events up to the version of a collection or newer confirm it', async (t) => {
  const clock = frozenClock(t)
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(10), [object('a', 10)])
  const listedAt = clock.now
  const confirmedAfter = async (since: string, ...events: WatchEvent[]): Promise<unknown> => {
    clock.now += 60_000
    await store.apply(collection(), events, { since })
    return store.list(collection())?.confirmedAt
  }
  const [older, newer] = [changed('MODIFIED', object('a', 9)), changed('MODIFIED', object('a', 13))]
  t.equal(await confirmedAfter('5', older, bookmark(9)), listedAt, 'of a slower watch')
  t.equal(await confirmedAfter('5', bookmark(9)), listedAt)
  t.equal(await confirmedAfter('12', newer), listedAt, 'of a watch that begins later')
  t.equal(await confirmedAfter('10', newer), clock.now)
  t.equal(await confirmedAfter('5', older, newer), clock.now)
})

void t.test(
  'the same list costs no write, a newer one no body, also after a restart',
  async (t) => {
    const directory = rootFolder(t)
    const size = (): number =>
      logFilesIn(join(directory, 'cache')).reduce((sum, file) => sum + statSync(file).size, 0)
    {
      await using store = await open(directory)
      await replace(store, collection(), head(200), pods(100, 1))
      const before = size()
      await replace(store, collection(), head(200), pods(100, 1))
      t.equal(size(), before)
      await replace(store, collection(), head(201), pods(100, 1))
      t.equal(store.list(collection())?.resourceVersion, '201')
      t.ok(size() - before < 1_000, `${size() - before} bytes`)
    }
    await using store = await open(directory)
    const before = size()
    await replace(store, collection(), head(201), pods(100, 1))
    t.equal(size(), before)
  },
)

void t.test('of one version the bytes that came last are stored', async (t) => {
  const directory = rootFolder(t)
  const other = (name: string) =>
    object(name, 1, { bytes: Buffer.from(`${name} by another release`) })
  {
    await using store = await open(directory)
    for (const key of [collection(), secrets]) {
      await replace(store, key, head(5), [object('a', 1), object('b', 2)])
      await replace(store, key, head(5), [other('a'), object('b', 2)])
      t.strictSame(listed(store, key), ['a by another release', 'b at 2'])
      t.equal(got(store, keyOf('a', key)), 'a by another release')
      await store.put(keyOf('a', key), pod, object('a', 1))
      t.equal(got(store, keyOf('a', key)), 'a at 1', 'by a get, too')
      await store.put(keyOf('a', key), pod, other('a'))
      t.equal(got(store, keyOf('a', key)), 'a by another release')
      t.strictSame(listed(store, key), ['a by another release', 'b at 2'])
    }
  }
  await using store = await open(directory)
  for (const key of [collection(), secrets])
    t.equal(got(store, keyOf('a', key)), 'a by another release')
})

const secretKey = (name: string) => keyOf(name, { gvr: secrets.gvr })
const plain = 'cGFzc3dvcmQ6IGh1bnRlcjI='

void t.test('secrets and tokens are sealed in every file, and read back', async (t) => {
  const directory = rootFolder(t)
  const token = { group: '', version: 'v1', resource: 'serviceaccounts/token' }
  const bytes = Buffer.from(plain.repeat(400))
  await using store = await open(directory)
  await replace(store, secrets, head(5), [object('s', 1, { bytes })])
  await store.apply(secrets, [changed('MODIFIED', object('s', 6, { bytes }))])
  await store.put(keyOf('default', { gvr: token }), pod, object('default', 1, { bytes }))
  await store.put(keyOf('open'), pod, object('open', 1, { bytes: Buffer.from('in the clear') }))
  const names = readdirSync(join(directory, 'cache')).filter((name) => name.endsWith('.log'))
  const files = names.map((name) => join(directory, 'cache', name))
  t.ok(
    files.some((file) => readFileSync(file).includes('in the clear')),
    'the search finds',
  )
  for (const file of files) t.notOk(readFileSync(file).includes(plain), file)
  t.strictSame(listed(store, secrets), [bytes.toString()])
  t.equal(got(store, secretKey('s')), bytes.toString())
  t.equal(got(store, keyOf('default', { gvr: token })), bytes.toString())
  const previous = await store.apply(secrets, [changed('DELETED', object('s', 7))])
  t.strictSame(texts(previous), [bytes.toString()])
})

void t.test('a Table of secrets is sealed, which may have them whole in its rows', async (t) => {
  const directory = rootFolder(t)
  const table = keyOf('/api/v1/secrets?', { gvr: tablesOf(secrets.gvr), namespace: '' })
  await using store = await open(directory)
  await putDocument(store, table, 'application/json', Buffer.from(plain))
  for (const file of logFilesIn(join(directory, 'cache')))
    t.notOk(readFileSync(file).includes(plain), file)
  t.equal(got(store, table), plain)
})

void t.test('with another key sealed objects are unknown, and the rest is served', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, secrets, head(5), [object('s', 1)])
    await store.put(secretKey('single'), pod, object('single', 1))
    await replace(store, collection(), head(5), [object('p', 1)])
  }
  await using store = await open(directory, { sealingKey: Buffer.alloc(32, 1) })
  t.throws(() => listed(store, secrets), { code: 'STORE_FAILURE' })
  t.equal(store.list(secrets), undefined)
  t.equal(store.get(secretKey('s')), undefined)
  t.equal(store.get(secretKey('single')), undefined)
  t.strictSame(listed(store, collection()), ['p at 1'])
  t.strictSame([...new Set(faults)], ['damaged'])
  await replace(store, secrets, head(6), [object('s', 1)])
  t.strictSame(listed(store, secrets), ['s at 1'])
})

void t.test('a truncated key file is replaced', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await store.put(keyOf('a'), pod, object('a', 1))
  }
  writeFileSync(join(directory, 'store.key'), 'short')
  await using store = await open(directory)
  t.equal(readFileSync(join(directory, 'store.key')).byteLength, 32)
  t.strictSame(faults, [])
  t.equal(got(store, keyOf('a')), 'a at 1')
})

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
  const directory = rootFolder(t)
  const places = [{}, { gvr: secrets.gvr }]
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
    const directory = rootFolder(t)
    const sizes = [0, 1, 3 << 20]
    const of = (size: number, version: number) =>
      object(`of-${size}`, version, { bytes: Buffer.alloc(size, version) })
    const document = documentAt(nodeIdentity, '/api', '')
    const before = sizes.map((size) => of(size, 1))
    {
      await using store = await open(directory)
      for (const key of [collection(), secrets]) {
        await replace(store, key, head(1), before)
        const events = sizes.map((size) => changed('MODIFIED', of(size, 2)))
        await store.apply(key, events)
      }
      await putDocument(store, document, '', new Uint8Array(0))
    }
    await using store = await open(directory)
    for (const key of [collection(), secrets])
      t.strictSame(
        listed(store, key)?.map((text) => text?.length),
        sizes,
      )
    t.equal(got(store, document), '')
    t.strictSame(faults, [])
  },
)

void t.test(
  'an object that a selection has shown later is not absent by an older list',
  async (t) => {
    const selected = collection({ labelSelector: 'app' })
    await using store = await open(rootFolder(t))
    await replace(store, collection(), head(2), [object('z', 1)])
    await replace(store, selected, head(2), [])
    t.equal(got(store, keyOf('a')), 'absent')
    await store.apply(selected, [changed('ADDED', object('a', 4))])
    t.equal(got(store, keyOf('a')), 'a at 4')
    await store.apply(selected, [changed('DELETED', object('a', 5))])
    t.equal(got(store, keyOf('a')), undefined, 'deleted, or not selected any more')
    t.equal(got(store, keyOf('z')), 'z at 1')
    await replace(store, collection(), head(5), [object('z', 1)])
    t.equal(got(store, keyOf('a')), 'absent')
    t.strictSame(faults, [])
  },
)

void t.test('an object that leaves a selection ends there as it was', async (t) => {
  const selected = collection({ labelSelector: 'app' })
  const labelled = (version: number) => object('a', version, { bytes: Buffer.from('labelled') })
  const bare = object('a', 6, { bytes: Buffer.from('bare') })
  for (const leaves of ['first', 'last']) {
    await using store = await open(rootFolder(t))
    for (const key of [collection(), selected]) await replace(store, key, head(5), [labelled(1)])
    const leave = async (): Promise<unknown> =>
      t.strictSame(texts(await store.apply(selected, [changed('DELETED', labelled(6))])), [
        'labelled',
      ])
    if (leaves === 'first') await leave()
    await store.apply(collection(), [changed('MODIFIED', bare)])
    if (leaves === 'last') await leave()
    t.strictSame(listed(store, collection()), ['bare'])
    t.equal(got(store, keyOf('a')), 'bare')
  }
})

void t.test('a list from before an object left a selection does not bring it back', async (t) => {
  const selected = collection({ labelSelector: 'app' })
  await using store = await open(rootFolder(t))
  for (const key of [collection(), selected]) await replace(store, key, head(5), [object('a', 1)])
  await store.apply(selected, [changed('DELETED', object('a', 6))])
  t.equal(got(store, keyOf('a')), undefined)
  await replace(store, collection(), head(5), [object('a', 1)])
  t.equal(got(store, keyOf('a')), undefined, 'of an API server that lags behind the watch')
  await replace(store, collection(), head(7), [object('a', 1)])
  t.ok(got(store, keyOf('a')), 'a later list shows it')
})

void t.test('what comes in one turn goes to the disk together, a mebibyte at most', async (t) => {
  await using store = await open(rootFolder(t))
  await replace(store, collection(), head(1), [object('a', 1)])
  const appended: number[] = []
  const append = Reflect.get(Segment.prototype, 'append') as Segment['append']
  t.teardown(() => (Segment.prototype.append = append))
  Segment.prototype.append = function (parts, length) {
    appended.push(length)
    return append.call(this, parts, length)
  }
  const bytes = Buffer.alloc(100 * 1024)
  await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      store.apply(collection(), [changed('MODIFIED', object('a', 2 + index, { bytes }))]),
    ),
  )
  const mebi = 1024 * 1024
  t.strictSame(
    appended.map((each) => each <= mebi),
    [true, true, true],
  )
})

void t.test('a writer that brings more than the disk takes waits', async (t) => {
  await using store = await open(rootFolder(t))
  await using replacement = store.replace(collection())
  await replacement.add({ objects: [object('a', 1)] })
  let waited = true
  const large = replacement.add({ objects: pods(100, 2, 100_000) }).then(() => (waited = false))
  await turn()
  t.ok(waited)
  await large
  await replacement.commit(head(200))
  t.equal(listed(store, collection())?.length, 101)
})
