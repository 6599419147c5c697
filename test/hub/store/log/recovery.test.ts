import t, { type Test } from 'tap'
import { cpSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { putDocument } from '../../../../src/hub/store/document.ts'
import { StoreFailure, type ObjectStore } from '../../../../src/hub/store/store.ts'
import {
  bookmark,
  changed,
  collection,
  got,
  head,
  type json,
  keyOf,
  listed,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { damageBodies, flip, laterLog, logFilesIn, recordsIn } from '../../../kit/log-on-disk.ts'
import { rootFolder } from '../../../kit/root-folder.ts'
import { until } from '../../../kit/until.ts'
import { api, faults, open, secrets } from './opened.ts'

t.beforeEach(() => faults.splice(0))

const selected = collection({ labelSelector: 'app=x' })
const keys = [collection(), selected, secrets]

/** What a store holds, as far as it can be told. */
function stateOf(store: ObjectStore): string {
  const told = (read: () => unknown): unknown => {
    try {
      return read()
    } catch (cause) {
      if (cause instanceof StoreFailure) return 'broken off'
      throw cause
    }
  }
  return JSON.stringify([
    ...keys.map((key) => [store.version(key), told(() => listed(store, key))]),
    ...keys.map((key) => store.list(key)?.changedAt),
    ...['a', 'b', 'c', 'single'].map((name) => got(store, keyOf(name))),
    got(store, api),
  ])
}

/** Each step changes something that `stateOf` tells. */
const steps: readonly ((store: ObjectStore) => Promise<unknown>)[] = [
  (store) => replace(store, collection(), head(5), [object('a', 1), object('b', 2)]),
  (store) => store.put(keyOf('single'), pod, object('single', 6)),
  (store) => store.apply(collection(), [changed('MODIFIED', object('a', 7)), bookmark(8)]),
  (store) => replace(store, selected, head(9), [object('a', 7)]),
  (store) => store.apply(collection(), [changed('DELETED', object('b', 10))]),
  (store) => putDocument(store, api, 'text/plain', Buffer.from('api')),
  (store) => replace(store, secrets, head(11), [object('s', 3), object('t', 4)]),
  (store) => store.apply(secrets, [changed('MODIFIED', object('s', 12))]),
  (store) => store.apply(collection(), [changed('ADDED', object('c', 13))]),
  (store) => store.forget(keyOf('a')),
  (store) => replace(store, collection(), head(15), [object('a', 14), object('d', 15)]),
  (store) => store.apply(selected, [changed('MODIFIED', object('a', 14))], { since: '9' }),
]

/** A log of all steps, and the states after each; synced only where that is promised. */
async function written(t: Test): Promise<{ folder: string; states: readonly string[] }> {
  const folder = rootFolder(t)
  const store = await open(folder, { syncWithinMs: 1e9 })
  const states = [stateOf(store)]
  for (const step of steps) {
    await step(store)
    states.push(stateOf(store))
  }
  t.equal(new Set(states).size, steps.length + 1, 'each step shows')
  const copy = join(folder, 'killed')
  cpSync(join(folder, 'cache'), join(copy, 'cache'), { recursive: true })
  cpSync(join(folder, 'store.key'), join(copy, 'store.key'))
  await store[Symbol.asyncDispose]()
  return { folder: copy, states }
}

async function withCopy<T>(
  folder: string,
  name: string,
  change: (cache: string) => void,
  look: (store: ObjectStore) => Promise<T> | T,
): Promise<T> {
  const copy = join(folder, name)
  mkdirSync(copy)
  for (const each of ['cache', 'store.key'])
    cpSync(join(folder, each), join(copy, each), { recursive: true })
  change(join(copy, 'cache'))
  await using store = await open(copy)
  return await look(store)
}

void t.test('wherever a crash cuts the log, what was written before is there', async (t) => {
  const { folder, states } = await written(t)
  const records = recordsIn(join(folder, 'cache'))
  const [file = ''] = logFilesIn(join(folder, 'cache'))
  const name = file.slice(file.lastIndexOf('/') + 1)
  const cuts = records.flatMap(({ begin, bodiesAt, end }) => [
    begin,
    begin + 1,
    begin + 36,
    bodiesAt,
    Math.floor((begin + end) / 2),
    end - 1,
  ])
  let last = 0
  for (const at of [...new Set(cuts)].toSorted((a, b) => a - b)) {
    const cut = (cache: string): void => truncateSync(join(cache, name), at)
    const state = await withCopy(folder, `cut-${at}`, cut, stateOf)
    const found = states.indexOf(state)
    t.ok(found >= last, `at ${at}: state ${found} after ${last}`)
    last = Math.max(last, found)
  }
  const whole = await withCopy(folder, 'whole', () => undefined, stateOf)
  t.equal(states.indexOf(whole), states.length - 1)
  t.strictSame(faults, [])
})

void t.test('bytes that a power cut has left as zeros end the log', async (t) => {
  const { folder, states } = await written(t)
  const records = recordsIn(join(folder, 'cache'))
  const last = records.at(-1)!
  // After the last deletion, which was synced, nothing has been.
  for (const [at, length] of [
    [last.begin, last.end - last.begin],
    [last.bodiesAt, last.end - last.bodiesAt],
    [last.begin + 40, 10],
  ] as const) {
    const zero = (cache: string): void => {
      const [file = ''] = logFilesIn(cache)
      const bytes = readFileSync(file)
      bytes.fill(0, at, at + length)
      writeFileSync(file, bytes)
    }
    const state = await withCopy(folder, `zeros-${at}-${length}`, zero, stateOf)
    t.equal(states.indexOf(state), states.length - 2)
  }
  t.strictSame(faults, [])
})

void t.test('after a cut the log goes on, and what was cut stays away', async (t) => {
  const { folder } = await written(t)
  const last = recordsIn(join(folder, 'cache')).at(-1)!
  const state = await withCopy(
    folder,
    'again',
    (cache) => truncateSync(logFilesIn(cache)[0]!, last.end - 1),
    async (store) => {
      await store.put(keyOf('single'), pod, object('single', 99))
      return stateOf(store)
    },
  )
  await using store = await open(join(folder, 'again'))
  t.equal(stateOf(store), state)
  t.equal(got(store, keyOf('single')), 'single at 99')
})

void t.test('whichever bit flips, a store serves nothing that is wrong', async (t) => {
  const { folder, states } = await written(t)
  // A regular end: all was on the disk.
  await (await open(folder))[Symbol.asyncDispose]()
  const files = logFilesIn(join(folder, 'cache'))
  const told = states.map((state) => JSON.parse(state) as unknown[])
  const isTold = (part: unknown, at: number): boolean =>
    told.some((state) => JSON.stringify(state[at]) === JSON.stringify(part))
  let flips = 0
  for (const file of files) {
    const { length } = readFileSync(file)
    for (let at = 0; at < length; at += 23) {
      const name = file.slice(file.lastIndexOf('/') + 1)
      const change = (cache: string): void => flip(join(cache, name), at, 1 << (flips % 8))
      // What is damaged is found by the first reading.
      const twice = (store: ObjectStore): readonly string[] => [stateOf(store), stateOf(store)]
      const read = await withCopy(folder, `flip-${flips}`, change, twice)
      for (const [part, found] of read.flatMap((state) => [
        ...(JSON.parse(state) as unknown[]).entries(),
      ])) {
        const isBroken = Array.isArray(found) && found[1] === 'broken off'
        const isUnknown = isBroken || found === null || found === undefined
        if (!isUnknown && !isTold(found, part)) t.fail(`${name} at ${at}: ${JSON.stringify(found)}`)
      }
      flips += 1
    }
  }
  t.ok(flips > 100, `${flips} flips`)
  t.notOk(faults.includes('maintenance'))
})

void t.test('a damaged record makes its resource unknown, and others stay', async (t) => {
  const { folder } = await written(t)
  await (await open(folder))[Symbol.asyncDispose]()
  const event = recordsIn(join(folder, 'cache')).find(
    ({ record }) => record.kind === 'apply' && record.collection.gvr.resource === 'secrets',
  )!
  const look = async (store: ObjectStore): Promise<unknown> => {
    t.equal(store.list(secrets), undefined)
    t.strictSame(listed(store, collection()), ['a at 14', 'd at 15'])
    await replace(store, secrets, head(20), [object('s', 19)])
    const cache = join(folder, 'damaged', 'cache')
    const file = event.file.replace(join(folder, 'cache'), cache)
    await until('the log to be written anew', () => !logFilesIn(cache).includes(file))
    return listed(store, secrets)
  }
  const change = (cache: string): void =>
    flip(event.file.replace(join(folder, 'cache'), cache), event.begin + 40)
  t.strictSame(await withCopy(folder, 'damaged', change, look), ['s at 19'])
  t.strictSame(faults, ['damaged'], 'reported once')
  await using store = await open(join(folder, 'damaged'))
  t.strictSame(listed(store, secrets), ['s at 19'])
  t.strictSame(faults, ['damaged'], 'and written anew')
})

void t.test('a damaged body makes its list unknown, until the next one', async (t) => {
  const directory = rootFolder(t)
  const selected = collection({ labelSelector: 'app=x' })
  const all = [object('a', 1), object('b', 2), object('c', 3)]
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), all)
    await replace(store, selected, head(5), [object('a', 1)])
    await store.put(keyOf('a'), pod, object('a', 1))
  }
  damageBodies(join(directory, 'cache'), 'b')
  {
    await using store = await open(directory)
    t.throws(() => listed(store, collection()), { code: 'STORE_FAILURE' })
    t.equal(store.list(collection()), undefined)
    t.equal(store.get(keyOf('b')), undefined, 'damaged is not absent')
    t.equal(got(store, keyOf('a')), 'a at 1')
    await store.apply(collection(), [bookmark(6)])
  }
  t.strictSame(faults.splice(0), ['damaged'], 'reported once')
  await using store = await open(directory)
  t.equal(store.list(collection()), undefined, 'across a restart, too')
  t.strictSame(listed(store, selected), ['a at 1'], 'others stay')
  await replace(store, collection(), head(6), all)
  t.strictSame(listed(store, collection()), ['a at 1', 'b at 2', 'c at 3'])
})

void t.test('a damaged head hides no deletion, however short its segment is', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(5), [object('a', 1)])
  }
  {
    await using store = await open(directory)
    await store.apply(collection(), [changed('DELETED', object('a', 6))])
  }
  const [last = ''] = logFilesIn(join(directory, 'cache')).toReversed()
  t.ok(readFileSync(last).length < 1_000)
  flip(last, 40)
  await using store = await open(directory)
  t.equal(store.get(keyOf('a')), undefined)
  t.equal(store.list(collection()), undefined)
  t.strictSame(faults, ['damaged'])
})

void t.test('what is damaged is not absent by an older list, also after a restart', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, collection(), head(10), [object('a', 1)])
    await store.put(keyOf('x'), pod, object('x', 11))
    await replace(store, selected, head(20), [object('y', 12), object('z', 13)])
  }
  for (const name of ['x', 'y']) damageBodies(join(directory, 'cache'), name)
  for (const time of ['when it is found', 'and again']) {
    await using store = await open(directory)
    for (const name of ['x', 'y', 'z', 'x', 'y', 'z'])
      if (name !== 'z') t.equal(store.get(keyOf(name)), undefined, time)
      else t.not(store.get(keyOf(name)), 'absent', time)
  }
  await using store = await open(directory)
  await replace(store, collection(), head(21), [object('a', 1)])
  for (const name of ['x', 'y', 'z']) t.equal(store.get(keyOf(name)), 'absent', 'a newer one')
})

void t.test('a damaged record makes no object absent by a list in another encoding', async (t) => {
  const directory = rootFolder(t)
  const { identity } = collection().partition
  const partition = { identity, representation: 'protobuf' as typeof json }
  {
    await using store = await open(directory)
    await replace(store, collection({ partition }), head(10), [object('a', 1)])
    await store.put(keyOf('x'), pod, object('x', 12))
  }
  const put = recordsIn(join(directory, 'cache')).find(({ record }) => record.kind === 'put')
  flip(put?.file ?? '', (put?.bodiesAt ?? 0) - 5)
  await using store = await open(directory)
  t.match(faults, ['damaged'])
  for (const key of [keyOf('x'), keyOf('x', { partition })]) t.equal(store.get(key), undefined)
})

void t.test('what is lost with a damaged list is not shown as it was before', async (t) => {
  const directory = rootFolder(t)
  {
    await using store = await open(directory)
    await replace(store, selected, head(5), [object('a', 3), object('c', 4)])
    await replace(store, collection(), head(9), [object('a', 8), object('b', 2), object('c', 4)])
  }
  damageBodies(join(directory, 'cache'), 'b')
  for (const time of ['when it is found', 'after a restart']) {
    await using store = await open(directory)
    t.equal(store.get(keyOf('b')), undefined)
    t.equal(store.get(keyOf('a')), undefined, time)
    t.equal(got(store, keyOf('c')), 'c at 4', 'the same state, of another list')
    t.strictSame(listed(store, selected), ['a at 3', 'c at 4'])
  }
})

void t.test('in place of files that are no log a new one is begun', async (t) => {
  const directory = t.testdir({ cache: { '0000000001.log': 'no log'.repeat(1000) } })
  await using store = await open(directory)
  t.strictSame(faults, ['unusable'])
  await replace(store, collection(), head(5), [object('a', 1)])
  t.strictSame(listed(store, collection()), ['a at 1'])
  const [file = ''] = logFilesIn(join(directory, 'cache'))
  await until('the former files to go', () => !/0{9}1.log$/.test(file) || !existsSync(file))
})

void t.test('a log of a later release is refused, and left as it is', async (t) => {
  const directory = t.testdir({ cache: {} })
  laterLog(join(directory, 'cache'))
  const bytes = readFileSync(join(directory, 'cache', '0000000001.log'))
  for (const time of ['once', 'and again'])
    await t.rejects(
      open(directory),
      { message: /by a later release: .*format 1000.*up to 2/ },
      time,
    )
  t.strictSame(readFileSync(join(directory, 'cache', '0000000001.log')), bytes)
  t.strictSame(faults, [])
})

void t.test('opening fails where nothing can be written', async (t) => {
  await t.rejects(open(t.testdir({ cache: 'a file' })), { code: 'STORE_FAILURE' })
})
