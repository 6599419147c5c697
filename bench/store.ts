// npm run bench-store: what the store takes to keep lists and events, beside what the disk itself
// takes. README.md says more.
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiObject } from '../src/api/kube/object.ts'
import type { RepresentationKey } from '../src/api/request/representation.ts'
import { nodeIdentity } from '../src/api/request/identity.ts'
import { openStore } from '../src/hub/store/log/open.ts'
import type { CollectionKey, ObjectStore } from '../src/hub/store/store.ts'
import { machine } from './machine.ts'
import { spread } from './measure/statistics.ts'

const say = (line: string): void => console.log(line)
const runs = 15
const objectBytes = 6_000

const pods: CollectionKey = {
  partition: {
    identity: nodeIdentity,
    representation: 'application/json;object' as RepresentationKey,
  },
  gvr: { group: '', version: 'v1', resource: 'pods' },
  labelSelector: '',
  fieldSelector: '',
}
const gvk = { group: '', version: 'v1', kind: 'PodList' }

/** Versions go up over the whole run. */
let version = 1

const podAt = (at: number): ApiObject => ({
  namespace: 'default',
  name: `pod-${at}`,
  uid: `uid-${at}`,
  resourceVersion: String(version++),
  bytes: Buffer.alloc(objectBytes, `pod ${at} at ${version} `),
})

const many = (count: number): ApiObject[] => Array.from({ length: count }, (_, at) => podAt(at))

async function replace(store: ObjectStore, objects: readonly ApiObject[]): Promise<void> {
  await using list = store.replace(pods)
  for (let at = 0; at < objects.length; at += 100)
    await list.add({ objects: objects.slice(at, at + 100) })
  await list.commit({ gvk, resourceVersion: String(version), extra: '' })
}

const apply = (store: ObjectStore, type: 'MODIFIED' | 'DELETED', object: ApiObject) =>
  store.apply(pods, [{ type, object }])

/** Milliseconds, each measured `times` over after one that does not count. */
async function row(name: string, act: () => Promise<void> | void, times = runs): Promise<void> {
  const taken: number[] = []
  for (let run = 0; run <= times; run += 1) {
    const began = performance.now()
    await act()
    if (run > 0) taken.push(performance.now() - began)
  }
  const { median, min, max } = spread(taken) ?? { median: 0, min: 0, max: 0 }
  say(`${name.padEnd(46)} ${median.toFixed(2)} ms (${min.toFixed(2)} to ${max.toFixed(2)})`)
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'nodehub-bench-'))
  using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
  const sealingKey = randomBytes(32)
  const open = () =>
    openStore({
      directory: join(folder, 'cache'),
      sealingKey,
      report: (kind, failure) => say(`! ${kind}: ${failure.message}`),
    })
  say(`${machine()}; in ${folder}; objects of ${objectBytes} bytes`)
  const file = openSync(join(folder, 'sync'), 'w')
  const page = Buffer.alloc(4096, 1)
  await row('the disk: 4 KiB written and synced', () => {
    writeSync(file, page)
    fdatasyncSync(file)
  })
  closeSync(file)

  let store = await open()
  for (const count of [500, 5000, 20_000]) {
    let objects = many(count)
    const times = count > 5000 ? 3 : runs
    await row(`replace ${count}, all changed`, () => replace(store, (objects = many(count))), times)
    await row(`replace ${count}, nothing changed`, () => replace(store, objects))
    await row(`list ${count}`, () => {
      for (const batch of store.list(pods)?.batches ?? [])
        if (batch.objects.length === 0) throw new Error()
    })
    await store[Symbol.asyncDispose]()
    await row(
      `open ${count} and read the list's first objects`,
      async () => {
        store = await open()
        store.list(pods)?.batches[Symbol.iterator]().next()
        await store[Symbol.asyncDispose]()
      },
      5,
    )
    store = await open()
  }
  await row('apply one change', () => apply(store, 'MODIFIED', podAt(1)).then(() => undefined), 200)
  let gone = 100
  await row(
    'apply one deletion, synced',
    () => apply(store, 'DELETED', podAt((gone += 1))).then(() => undefined),
    200,
  )
  await row('apply 100 changes that came together', async () => {
    await store.apply(
      pods,
      many(100).map((object) => ({ type: 'MODIFIED', object }) as const),
    )
  })
  await store[Symbol.asyncDispose]()
}

await main()
