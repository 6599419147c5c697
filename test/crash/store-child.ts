import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiObject } from '../../src/api/kube/object.ts'
import { openStore } from '../../src/hub/store/log/open.ts'
import type { LogStore } from '../../src/hub/store/log/log-store.ts'
import { putDocument } from '../../src/hub/store/document.ts'
import { StoreFailure, type ObjectStore } from '../../src/hub/store/store.ts'
import { bookmark, changed, head, pod, replace } from '../contracts/object-store.ts'
import { Random } from '../fuzz/random.ts'
import {
  bodyOf,
  collections,
  document,
  storePaths,
  registers,
  single,
  stateOf,
  type WorkloadLine,
} from './workload.ts'

/**
 * Writes to a store, in rounds from a seed, and logs in the file `told` what it begins and what is
 * done.
 */
const [folder = '', seed = '1', rounds = '10', syncWithin] = process.argv.slice(2)
const random = new Random(Number(seed))
const told = openSync(join(folder, 'told'), 'a', 0o600)
const say = (said: WorkloadLine): void => void writeSync(told, `${JSON.stringify(said)}\n`)

const open = (): Promise<LogStore> =>
  openStore({
    ...storePaths(folder),
    // Otherwise commits that may be lost in a power cut stay unsynced.
    syncWithinMs: Number(syncWithin ?? 1e9),
    report: (kind, failure) => {
      if (kind !== 'write') throw new Error(kind, { cause: failure })
      say({ noticed: true })
    },
  })

/** The objects of each list. */
const held = new Map<string, Map<string, ApiObject>>()
const versions = new Map<string, number>()
let version = 0

/** What the disk refuses makes a list unknown, which is listed once more. */
function hasFailed(register: string, cause: unknown): void {
  if (!(cause instanceof StoreFailure)) throw cause
  held.delete(register)
  say({ failed: register })
}

async function act(store: ObjectStore, register: string): Promise<void> {
  version += 1
  try {
    await write(store, register)
  } catch (cause) {
    hasFailed(register, cause)
    // Another writer starts soon.
    await sleep(5)
  }
}

async function write(store: ObjectStore, register: string): Promise<void> {
  if (collections[register]) return actOnList(store, register)
  if (register === 'document') {
    const body = Buffer.from(`document ${version}`)
    say({ begin: register, state: body.toString() })
    await putDocument(store, document, 'text/plain', body)
    return say({ done: register, outlives: 'nothing' })
  }
  if (random.once(3)) {
    const known = store.get(single) !== undefined
    say({ begin: register, state: 'none' })
    await store.forget(single)
    return say({ done: register, outlives: known ? 'all' : 'itself' })
  }
  const object = bodyOf('settings', version, sizeOf())
  say({ begin: register, state: stateOf('', [object]) })
  await store.put(single, pod, object)
  say({ done: register, outlives: 'nothing' })
}

const sizeOf = (): number => (random.once(50) ? 400_000 : random.of([60, 900, 4_000, 20_000]))

async function actOnList(store: ObjectStore, register: string): Promise<void> {
  const key = collections[register]!
  const members = held.get(register)
  if (!members || random.once(6)) return list(store, register, members ?? new Map())
  versions.set(register, version)
  if (random.once(8)) {
    say({ begin: register, state: stateOf(String(version), [...members.values()]) })
    await store.apply(key, [bookmark(version)])
    return say({ done: register, outlives: 'nothing' })
  }
  const leaves = members.size > 0 && random.once(3) ? random.of([...members.values()]) : undefined
  const object = leaves
    ? { ...leaves, resourceVersion: String(version) }
    : bodyOf(`of-${register}-${random.below(12)}`, version, sizeOf())
  if (leaves) members.delete(object.name)
  else members.set(object.name, object)
  say({ begin: register, state: stateOf(String(version), [...members.values()]) })
  await store.apply(key, [changed(leaves ? 'DELETED' : 'MODIFIED', object)])
  say({ done: register, outlives: leaves ? 'all' : 'nothing' })
}

/** Another list, or the same once more. What it lists is staged in two batches. */
async function list(
  store: ObjectStore,
  register: string,
  before: ReadonlyMap<string, ApiObject>,
): Promise<void> {
  const members = new Map(before)
  if (before.size === 0 || random.once(2)) {
    for (const name of before.keys()) if (random.once(3)) members.delete(name)
    for (let i = 0; i < 6; i++) {
      const object = bodyOf(`of-${register}-${random.below(12)}`, version, sizeOf())
      members.set(object.name, object)
    }
  }
  const same = [...members].every(([name, of]) => before.get(name) === of) && random.once(2)
  const at = same && members.size === before.size ? (versions.get(register) ?? version) : version
  held.set(register, members)
  const objects = [...members.values()]
  versions.set(register, at)
  say({ begin: register, state: stateOf(String(at), objects) })
  const key = collections[register]!
  await replace(store, key, head(at), objects.slice(0, 4), objects.slice(4))
  say({ done: register, outlives: same ? 'itself' : 'all' })
}

for (let round = 0; round < Number(rounds);) {
  const store = await open()
  do {
    round += 1
    // Writes of one turn share a commit.
    await Promise.all(registers.filter(() => random.once(2)).map((each) => act(store, each)))
    if (random.once(10)) await unfinished(store).catch((cause) => hasFailed('some', cause))
    if (syncWithin !== undefined && random.once(10)) await untilSynced(store)
  } while (round < Number(rounds) && !random.once(60))
  await store[Symbol.asyncDispose]()
}

/** Resolves after a late sync. */
async function untilSynced(store: LogStore): Promise<void> {
  let syncs = Infinity
  // It may have come before this waits for it.
  for (let tries = 0; store.diskWork.syncs <= syncs; tries++) {
    if (tries % 200 === 0) {
      if (tries >= 2_000) throw new Error('there is no sync')
      await act(store, 'document')
      ;({ syncs } = store.diskWork)
    }
    await sleep(5)
  }
  say({ synced: true })
}

/** A list that is never whole. */
async function unfinished(store: ObjectStore): Promise<void> {
  await using replacement = store.replace(collections['some']!)
  await replacement.add({ objects: [bodyOf('never', version, 4_000)] })
}
