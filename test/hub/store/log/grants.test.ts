import t from 'tap'
import { nodeIdentity, sharedIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import type { Identity } from '../../../../src/api/request/identity.ts'
import type { CollectionKey, ObjectKey } from '../../../../src/hub/store/store.ts'
import type { LogStore } from '../../../../src/hub/store/log/log-store.ts'
import { collection, head, json, object, pod, replace } from '../../../contracts/object-store.ts'
import { until } from '../../../kit/until.ts'
import { open } from './opened.ts'

const [guest, other] = [tokenHolder('guest'), tokenHolder('other')]
const everyone = { isShared: () => true }

const as = (identity: Identity, of: Partial<CollectionKey> = {}): CollectionKey =>
  collection({ partition: { identity, representation: json }, ...of })

const named = (identity: Identity, name: string): ObjectKey => {
  const { partition, gvr } = as(identity)
  return { partition, gvr, namespace: 'default', name }
}

const found = (store: LogStore, identity: Identity, name: string): string | undefined => {
  const stored = store.get(named(identity, name))
  return typeof stored === 'object' ? stored.object.resourceVersion : stored
}

const list = (
  store: LogStore,
  key: CollectionKey,
  version: string,
  ...names: readonly string[]
): Promise<void> =>
  replace(
    store,
    key,
    head(version),
    names.map((name) => object(name, Number(version))),
  )

void t.test('what one caller has read is kept once, and shown to whom it was given', async (t) => {
  await using store = await open(t.testdir(), everyone)
  await list(store, as(nodeIdentity), '7', 'a')
  for (const reader of [nodeIdentity, guest]) {
    t.equal(store.version(as(reader)), undefined)
    t.equal(store.list(as(reader)), undefined)
    t.equal(found(store, reader, 'a'), undefined)
  }
  t.equal(store.committedVersion(as(sharedIdentity)), '7')
  await store.grant(guest, as(guest))
  t.equal(store.version(as(guest)), '7')
  t.equal(found(store, guest, 'a'), '7')
  t.equal(found(store, guest, 'none'), 'absent')
  t.strictSame(
    store.collections(as(guest).partition, as(guest).gvr, undefined).map(({ key }) => key),
    [as(guest)],
  )
  t.equal(found(store, nodeIdentity, 'a'), undefined)
})

void t.test('an object is shown to whom it was given, in its newest state', async (t) => {
  await using store = await open(t.testdir(), everyone)
  await store.put(named(guest, 'a'), pod, object('a', 3))
  await store.grant(guest, named(guest, 'a'))
  await list(store, as(nodeIdentity), '7', 'a', 'b')
  t.equal(found(store, guest, 'a'), '7')
  t.equal(found(store, guest, 'b'), undefined)
  await list(store, as(nodeIdentity), '8', 'b')
  t.equal(found(store, guest, 'a'), undefined)
})

void t.test('of a selection only its own states are shown', async (t) => {
  await using store = await open(t.testdir(), everyone)
  const part = { labelSelector: 'app=a' }
  await list(store, as(guest, part), '5', 'a')
  await store.grant(guest, as(guest, part))
  await list(store, as(nodeIdentity), '7', 'a', 'b')
  t.equal(found(store, guest, 'a'), '5')
  t.equal(found(store, guest, 'b'), undefined)
  t.equal(found(store, guest, 'none'), undefined, 'nor that there is none')
})

void t.test('a grant outlasts the process, and ends when it is withdrawn', async (t) => {
  const directory = t.testdir()
  const readers = (store: LogStore): (string | undefined)[] =>
    [guest, other].flatMap((each) => [store.version(as(each)), found(store, each, 'one')])
  {
    await using store = await open(directory, everyone)
    await list(store, as(nodeIdentity), '7', 'a')
    await store.put(named(guest, 'one'), pod, object('one', 9))
    for (const each of [guest, other]) {
      await store.grant(each, as(each))
      await store.grant(each, named(each, 'one'))
    }
  }
  {
    await using store = await open(directory, everyone)
    t.strictSame(readers(store), ['7', '9', '7', '9'])
    const { gvr } = as(guest)
    const before = store.withdrawals
    await store.withdraw(guest, { of: 'collections', gvr, namespace: '' })
    t.strictSame(readers(store), [undefined, '9', '7', '9'])
    await store.withdraw(guest, { of: 'objects', gvr, namespace: 'default', name: 'one' })
    t.strictSame(readers(store), [undefined, undefined, '7', '9'])
    t.ok(store.isWithdrawnSince(before, guest))
    t.notOk(store.isWithdrawnSince(before, other))
    t.notOk(store.isWithdrawnSince(store.withdrawals, guest))
  }
  await using store = await open(directory, everyone)
  t.strictSame(readers(store), [undefined, undefined, '7', '9'])
})

void t.test('what is being written when it is withdrawn is withdrawn, too', async (t) => {
  const directory = t.testdir({ all: {}, own: {} })
  await using store = await open(`${directory}/all`, everyone)
  await using own = await open(`${directory}/own`)
  await list(store, as(nodeIdentity), '7', 'a')
  const what = { of: 'collections', gvr: as(guest).gvr, namespace: '' } as const
  const granted = store.grant(guest, as(guest))
  await Promise.all([granted, store.withdraw(guest, what)])
  t.equal(store.version(as(guest)), undefined)
  const listed = list(own, as(guest), '7', 'a')
  await new Promise<void>((resolve) => void setImmediate(resolve))
  await Promise.all([listed, own.withdraw(guest, what)])
  t.equal(own.version(as(guest)), undefined)
})

void t.test(
  'what is no longer kept for all is shown to none by the rights of another',
  async (t) => {
    const directory = t.testdir()
    const { gvr } = as(guest)
    {
      await using store = await open(directory, everyone)
      await list(store, as(guest), '7', 'a')
      await store.grant(guest, as(guest))
      t.equal(store.partitions(gvr, sharedIdentity).length, 1)
    }
    await using store = await open(directory)
    t.strictSame(store.partitions(gvr, sharedIdentity), [])
  },
)

void t.test('of what is kept for all only what the node reads is never evicted', async (t) => {
  await using store = await open(t.testdir(), { ...everyone, maxBytes: 4 << 20 })
  const part = (name: string) => ({ labelSelector: `app=${name}` })
  await list(store, as(nodeIdentity, part('node')), '1', 'of-the-node')
  await store.grant(nodeIdentity, as(nodeIdentity, part('node')))
  await list(store, as(guest, part('0')), '1', 'of-the-guest')
  await store.grant(guest, as(guest, part('0')))
  for (let at = 1; at < 36; at += 1) {
    const large = object(`large-${at}`, at, { bytes: Buffer.alloc(100_000) })
    await replace(store, as(guest, part(`${at}`)), head('1'), [large])
    await store.grant(guest, as(guest, part(`${at}`)))
  }
  await until('what only the guest reads to go', () => !store.list(as(guest, part('0'))))
  t.ok(store.list(as(nodeIdentity, part('node'))))
})
