import t from 'tap'
import { hubIdentity, nodeIdentity, tokenHolder } from '../../../../src/api/request/identity.ts'
import type { Identity } from '../../../../src/api/request/identity.ts'
import type { CollectionKey, ObjectKey } from '../../../../src/hub/store/store.ts'
import type { LogStore } from '../../../../src/hub/store/log/log-store.ts'
import {
  changed,
  collection,
  head,
  json,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
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

const large = (name: string) => object(name, 1, { bytes: Buffer.alloc(100_000, name) })

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
  await list(store, as(other), '7', 'a')
  t.equal(store.version(as(guest)), undefined)
  t.equal(store.list(as(guest)), undefined)
  t.equal(found(store, guest, 'a'), undefined)
  t.equal(store.version(store.copyOf(as(guest))), '7')
  await list(store, as(guest), '7', 'a')
  t.equal(store.version(as(guest)), '7')
  t.equal(found(store, guest, 'a'), '7')
  t.equal(found(store, guest, 'none'), 'absent')
  t.strictSame(
    store.collections(as(guest).partition, as(guest).gvr, undefined).map(({ key }) => key),
    [as(guest)],
  )
  t.equal(found(store, nodeIdentity, 'a'), undefined)
  await list(store, as(nodeIdentity), '6', 'of-then')
  t.equal(store.version(as(nodeIdentity)), '7', 'given an older one, it may have the newest')
})

void t.test('an object is shown to whom it was given, in its newest state', async (t) => {
  await using store = await open(t.testdir(), everyone)
  await store.put(named(guest, 'a'), pod, object('a', 3))
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
    for (const each of [guest, other]) {
      await list(store, as(each), '7', 'a')
      await store.put(named(each, 'one'), pod, object('one', 9))
    }
  }
  {
    await using store = await open(directory, everyone)
    t.strictSame(readers(store), ['7', '9', '7', '9'])
    const { gvr } = as(guest)
    await store.withdraw(guest, { of: 'collections', gvr, namespace: '' })
    t.strictSame(readers(store), [undefined, '9', '7', '9'])
    await store.withdraw(guest, { of: 'objects', gvr, namespace: 'default', name: 'one' })
    t.strictSame(readers(store), [undefined, undefined, '7', '9'])
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
  const given = list(store, as(guest), '7', 'a')
  await new Promise<void>((resolve) => void setImmediate(resolve))
  await Promise.all([given, store.withdraw(guest, what)])
  t.equal(store.version(as(guest)), undefined)
  const listed = list(own, as(guest), '7', 'a')
  await new Promise<void>((resolve) => void setImmediate(resolve))
  await Promise.all([listed, own.withdraw(guest, what)])
  t.equal(own.version(as(guest)), undefined)
})

void t.test('a withdrawal is in the order of writes, and costs others nothing', async (t) => {
  const what = { of: 'collections', gvr: as(guest).gvr, namespace: '' } as const
  for (let turns = 0; turns < 9; turns += 1) {
    const directory = t.testdir()
    {
      await using store = await open(directory, everyone)
      await list(store, as(guest), '7', 'a')
      const given = list(store, as(other), '7', 'a')
      for (let turn = 0; turn < turns; turn += 1)
        await new Promise<void>((resolve) => void setImmediate(resolve))
      await Promise.all([given, store.withdraw(guest, what)])
      t.equal(store.version(as(guest)), undefined)
      t.equal(store.version(as(other)), '7', `after ${turns} turns`)
    }
    await using store = await open(directory, everyone)
    t.equal(store.version(as(guest)), undefined)
    t.equal(store.version(as(other)), '7', 'and a restart')
  }
})

void t.test('an older list of another caller brings back nothing that was not found', async (t) => {
  await using store = await open(t.testdir(), everyone)
  await list(store, as(guest), '25', 'a')
  await store.forget(named(guest, 'a'))
  await list(store, as(other), '22', 'a')
  t.equal(found(store, guest, 'a'), undefined)
  await list(store, as(other), '25', 'a')
  t.equal(found(store, guest, 'a'), '25', 'one of the same version does')
})

void t.test(
  'what is no longer kept for all is shown to none by the rights of another',
  async (t) => {
    const directory = t.testdir()
    const { gvr } = as(guest)
    {
      await using store = await open(directory, everyone)
      await list(store, as(guest), '7', 'a')
      t.equal(store.partitions(gvr, hubIdentity).length, 1)
    }
    await using store = await open(directory)
    t.strictSame(store.partitions(gvr, hubIdentity), [])
  },
)

void t.test('what no caller may have any more is not kept', async (t) => {
  const directory = t.testdir()
  const whole = (store: LogStore): unknown[] => [
    store.version(store.copyOf(as(guest))),
    store.get(store.copyOf(named(guest, 'one'))),
  ]
  const { gvr } = as(guest)
  {
    await using store = await open(directory, everyone)
    for (const each of [guest, other]) {
      await list(store, as(each), '7', 'a')
      await store.put(named(each, 'one'), pod, object('one', 9))
    }
    for (const each of [guest, other]) {
      t.not(whole(store)[0], undefined)
      await store.withdraw(each, { of: 'collections', gvr, namespace: '' })
      await store.withdraw(each, { of: 'objects', gvr, namespace: 'default', name: 'one' })
    }
    t.strictSame(whole(store), [undefined, undefined])
  }
  await using store = await open(directory, everyone)
  t.strictSame(whole(store), [undefined, undefined])
})

void t.test('an object that is older than another’s list is given, too', async (t) => {
  await using store = await open(t.testdir(), everyone)
  await list(store, as(nodeIdentity), '7', 'a')
  await store.put(named(guest, 'a'), pod, object('a', 5))
  t.equal(found(store, guest, 'a'), '7')
})

void t.test('what one caller may have no more shows another no older state', async (t) => {
  const directory = t.testdir()
  const { gvr } = as(guest)
  const all = { of: 'collections', gvr, namespace: '' } as const
  const one = { of: 'objects', gvr, namespace: 'default' } as const
  const states = (store: LogStore): (string | undefined)[] => [
    ...['a', 'b'].map((name) => found(store, guest, name)),
    found(store, nodeIdentity, 'c'),
  ]
  {
    await using store = await open(directory, everyone)
    await store.put(named(guest, 'a'), pod, object('a', 5))
    await list(store, as(other), '10', 'a', 'b')
    await store.put(named(guest, 'b'), pod, object('b', 5))
    await list(store, as(nodeIdentity, { fieldSelector: 'metadata.name=c' }), '10', 'c')
    await store.put(named(other, 'c'), pod, object('c', 12))
    t.strictSame(states(store), ['10', '10', '10'])
    await store.withdraw(other, all)
    await store.withdraw(other, { ...one, name: 'c' })
    t.equal(store.version(store.copyOf(as(guest))), undefined)
    t.strictSame(states(store), ['10', '10', '10'])
  }
  await using store = await open(directory, everyone)
  t.strictSame(states(store), ['10', '10', '10'])
})

void t.test(
  'what leaves a selection is lost to none who was not given the selection',
  async (t) => {
    await using store = await open(t.testdir(), everyone)
    const part = as(guest, { labelSelector: 'app=a' })
    const states = (name: string): (string | undefined)[] =>
      [nodeIdentity, guest].map((each) => found(store, each, name))
    for (const name of ['a', 'b'])
      for (const each of [nodeIdentity, guest])
        await store.put(named(each, name), pod, object(name, 5))
    await list(store, part, '5', 'a', 'b')
    await list(store, part, '8', 'b')
    t.strictSame(states('a'), ['5', undefined])
    await store.apply(part, [changed('DELETED', object('b', 9))])
    t.strictSame(states('b'), ['8', undefined])
  },
)

void t.test('of what is kept for all only what the node reads is never evicted', async (t) => {
  await using store = await open(t.testdir(), { ...everyone, maxBytes: 4 << 20 })
  const part = (name: string) => ({ labelSelector: `app=${name}` })
  await list(store, as(nodeIdentity, part('node')), '1', 'of-the-node')
  await list(store, as(guest, part('0')), '1', 'of-the-guest')
  for (let at = 1; at < 36; at += 1)
    await replace(store, as(tokenHolder(`${at}`), part(`${at}`)), head(`${at}`), [
      large(`large-${at}`),
    ])
  await until('what others read to go', () => store.overview(99).collections.length < 36)
  t.ok(store.list(as(nodeIdentity, part('node'))))
})

void t.test('what one caller has read costs others nothing', async (t) => {
  await using store = await open(t.testdir(), { ...everyone, maxBytes: 4 << 20 })
  const part = (name: string) => ({ labelSelector: `app=${name}` })
  const both = part('both')
  for (const each of [guest, other])
    await replace(store, as(each, both), head('1'), [large('both')])
  await replace(store, as(other, part('other')), head('1'), [large('other')])
  for (let at = 0; at < 20; at += 1) {
    await replace(store, as(guest, part(`${at}`)), head('1'), [large(`${at}`)])
    await store.put(named(guest, `one-${at}`), pod, large(`one-${at}`))
  }
  await until('its oldest to go', () => !store.list(as(guest, part('0'))))
  t.equal(found(store, guest, 'one-0'), undefined)
  t.ok(found(store, guest, 'one-19'))
  t.ok(store.list(as(other, part('other'))))
  t.ok(store.list(as(other, both)))
})

void t.test('lists on their way count for who reads them', async (t) => {
  await using store = await open(t.testdir(), { ...everyone, maxBytes: 4 << 20 })
  const begin = async (reader: Identity, labelSelector: string): Promise<void> => {
    const many = Array.from({ length: 1_000 }, (_, at) => object(`p-${at}`, 1))
    await using replacement = store.replace(as(reader, { labelSelector }))
    for (let at = 0; at < 5; at += 1) await replacement.add({ objects: many })
  }
  await t.rejects(begin(guest, 'app=a'), { message: /lists in progress of token:guest/ })
  await t.resolves(begin(nodeIdentity, 'app=b'))
})
