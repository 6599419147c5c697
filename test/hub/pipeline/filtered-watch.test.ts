import t, { type Test } from 'tap'
import type { AbortSignalLike } from '../../../src/base/abort.ts'
import { onAbort } from '../../../src/base/abort.ts'
import { turn } from '../../../src/base/clock.ts'
import { isObjectEvent, type ObjectEvent, type WatchEvent } from '../../../src/api/codec/watch.ts'
import type { Exchange, CollectionSnapshot, Reply } from '../../../src/http/exchange/exchange.ts'
import { HeaderList } from '../../../src/http/exchange/headers.ts'
import type { FilterDefinition } from '../../../src/hub/filter/filter.ts'
import { Filters } from '../../../src/hub/filter/filters.ts'
import { ShownStates } from '../../../src/hub/filter/shown-states.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { withFilters } from '../../../src/hub/pipeline/filter-answers.ts'
import { objectRepresentation } from '../../../src/api/request/representation.ts'
import { Random } from '../../fuzz/random.ts'
import { filteringOf } from '../../kit/filtering.ts'
import { exchangeOf } from '../../kit/exchange.ts'
import { inputsOf } from '../../kit/inputs.ts'
import { Condition } from '../../kit/condition.ts'

const service = { group: '', version: 'v1', kind: 'Service' }
const json = objectRepresentation('json')
const names = ['a', 'b', 'c', 'd']

const objectAt = (name: string, version: number, written = version): ApiObject => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  resourceVersion: String(version),
  bytes: Buffer.from(
    JSON.stringify({ metadata: { name, resourceVersion: String(version) }, spec: { written } }),
  ),
})

interface Happened {
  readonly version: number
  readonly event: ObjectEvent
}

/**
 * A collection as a store and the watches of an API server show it, of which each watch is as late
 * as it likes.
 */
class Collection {
  readonly #objects = new Map<string, ApiObject>()
  readonly #log: Happened[] = []
  readonly #random: Random
  #version = 10
  #wake: (() => void)[] = []

  constructor(random: Random) {
    this.#random = random
  }

  put(name: string): void {
    const previous = this.#objects.get(name)
    const object = objectAt(name, ++this.#version)
    this.#objects.set(name, object)
    this.#happened({ type: previous ? 'MODIFIED' : 'ADDED', object, ...(previous && { previous }) })
  }

  delete(name: string): void {
    const previous = this.#objects.get(name)
    if (!previous) return
    this.#objects.delete(name)
    const object = objectAt(name, ++this.#version, Number(previous.resourceVersion))
    this.#happened({ type: 'DELETED', object, previous })
  }

  #happened(event: ObjectEvent): void {
    this.#log.push({ version: this.#version, event })
    const waiting = this.#wake
    this.#wake = []
    for (const wake of waiting) wake()
  }

  get held(): CollectionSnapshot {
    return {
      gvk: { ...service, kind: 'ServiceList' },
      resourceVersion: String(this.#version),
      batches: [...this.#objects.values()].map((object) => [object]),
    }
  }

  /** Answers as the dispatcher does. */
  readonly answer = async (exchange: Exchange): Promise<Reply> => {
    const head = { status: 200, headers: new HeaderList(), from: 'cloud' as const }
    const { query } = exchange.info
    if (query.get('watch') === null) {
      const end = { meta: { resourceVersion: String(this.#version), continue: '' } }
      const { gvk, batches } = this.held
      const objects = [...batches].flat()
      return {
        ...head,
        kind: 'list',
        representation: json,
        list: {
          gvk,
          head: [],
          batches: (async function* () {
            yield { objects }
          })(),
          end: () => Promise.resolve({ ...end, extra: '', tail: [] }),
        },
      }
    }
    const from = Number(query.get('resourceVersion'))
    return {
      ...head,
      kind: 'watch',
      representation: () => json,
      gvk: () => service,
      snapshot: () => this.held,
      events: this.#events(from, exchange.signal),
    }
  }

  async *#events(from: number, signal: AbortSignalLike): AsyncGenerator<readonly WatchEvent[]> {
    let told = from
    // What was stored before the watch began is not compared with what was there before.
    const stored = this.#version
    const knows = this.#random.below(2) === 0
    while (!signal.aborted) {
      for (let late = this.#random.below(4); late > 0; late--) await turn()
      const news = this.#log.filter(({ version }) => version > told)
      const group = news.slice(0, 1 + this.#random.below(3))
      told = group.at(-1)?.version ?? told
      if (group.length > 0) {
        yield group.map(({ version, event }) => {
          if (version > stored || knows) return event
          const { previous: _unknown, ...rest } = event
          return rest
        })
        continue
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake.push(resolve)
      using _left = onAbort(signal, resolve)
      await promise
    }
  }
}

/** Hides what is named like a node of the pool, and marks what the annotations name. */
const marking = (revision: string): FilterDefinition => ({
  name: 'marking',
  revision,
  rules: [
    {
      components: ['kubelet', 'kube-proxy', 'somebody'],
      group: '',
      resources: ['services'],
      verbs: ['list', 'watch'],
    },
  ],
  onError: 'pass',
  needs: ['poolNodes', 'topologies'],
  create:
    ({ poolNodes, topologies }) =>
    ({ name }) => {
      if (poolNodes?.includes(name)) return 'withhold'
      const value = `${revision} ${topologies?.[name] ?? ''}`
      return value === '0 ' ? 'leave' : [{ op: 'set', path: ['spec', 'mark'], value }]
    },
})

type Handle = (exchange: Exchange) => Promise<Reply>

/**
 * Holds what it is told, as client-go's reflectors do, and goes on from the version that it was
 * told last.
 */
class Reflector {
  readonly held = new Map<string, string>()
  readonly #headers: Record<string, string>
  readonly #handle: () => Handle
  readonly #bookmarks: boolean
  #version: string | undefined
  #leaving = new AbortController()
  readonly #told = new Condition()
  #isOver = false
  lists = 0
  readonly running: Promise<void>

  constructor(component: string, handle: () => Handle, bookmarks: boolean) {
    this.#headers = { 'User-Agent': `${component}/v1.35.0` }
    this.#handle = handle
    this.#bookmarks = bookmarks
    this.running = this.#run()
  }

  hangUp(): void {
    this.#leaving.abort()
  }

  stop(): Promise<void> {
    this.#isOver = true
    this.hangUp()
    return this.running
  }

  /** Resolves once it holds `name`. */
  async until(name: string): Promise<void> {
    await this.#told.until(() => this.held.has(name))
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      if (this.#version === undefined) await this.#list()
      else await this.#watch(this.#version)
      await turn()
    }
  }

  async #list(): Promise<void> {
    this.lists += 1
    const leaving = (this.#leaving = new AbortController())
    const reply = await this.#handle()(exchangeOf('/api/v1/services', { headers: this.#headers }))
    if (reply.kind !== 'list') throw new Error('no list')
    const held: ApiObject[] = []
    for await (const { objects } of reply.list.batches) held.push(...objects)
    const { meta } = await reply.list.end()
    if (leaving.signal.aborted) return
    this.held.clear()
    for (const each of held) this.held.set(each.name, each.bytes.toString())
    this.#version = meta.resourceVersion
    this.#note()
  }

  async #watch(from: string): Promise<void> {
    const leaving = (this.#leaving = new AbortController())
    const bookmarks = this.#bookmarks ? '&allowWatchBookmarks=true' : ''
    const reply = await this.#handle()(
      exchangeOf(`/api/v1/services?watch=true&resourceVersion=${from}${bookmarks}`, {
        headers: this.#headers,
        signal: leaving.signal,
      }),
    )
    if (reply.kind !== 'watch') throw new Error('no watch')
    for await (const group of reply.events) {
      for (const event of group) {
        // Who hangs up reads no further, wherever it is.
        if (leaving.signal.aborted) return
        if (!this.#take(event)) return
      }
    }
  }

  #take(event: WatchEvent): boolean {
    if (event.type === 'ERROR') {
      this.#version = undefined
      return false
    }
    if (event.type === 'BOOKMARK') this.#version = event.resourceVersion
    else if (isObjectEvent(event)) {
      const { name, resourceVersion, bytes } = event.object
      if (event.type === 'DELETED') this.held.delete(name)
      else this.held.set(name, bytes.toString())
      this.#version = resourceVersion
    }
    this.#note()
    return true
  }

  #note(): void {
    this.#told.changed()
  }
}

const telling = {
  onFailure: (name: string, cause: unknown) => t.fail(name, { cause }),
  warn: () => undefined,
}

async function history(t: Test, seed: number): Promise<void> {
  const drawn = new Random(seed)
  const random = (limit: number): number => drawn.below(limit)
  const collection = new Collection(drawn)
  let [revision, poolNodes, topologies] = ['0', [] as string[], {} as Record<string, string>]
  let filters: Filters
  let shown = new ShownStates()
  let handle: Handle = collection.answer
  const hooks = { onDifference: () => undefined, onExpired: () => undefined }
  const start = (): void => {
    filters = new Filters([marking(revision)], inputsOf({ poolNodes, topologies }), telling)
    handle = withFilters({ ...filteringOf(filters), shown, hooks })(collection.answer)
  }
  start()
  for (const name of names) if (random(2) === 0) collection.put(name)
  const clients = ['kubelet', 'kube-proxy'].map(
    (component) => new Reflector(component, () => handle, random(2) === 0),
  )
  const some = (): string[] => names.filter(() => random(2) === 0)
  const steps: (() => void | Promise<void>)[] = [
    () => collection.put(names[random(4)] ?? ''),
    () => collection.put(names[random(4)] ?? ''),
    () => collection.delete(names[random(4)] ?? ''),
    () => filters.setInputs({ poolNodes: (poolNodes = some()) }),
    () =>
      filters.setInputs({
        topologies: (topologies = Object.fromEntries(some().map((name) => [name, 'x']))),
      }),
    () => clients[random(2)]?.hangUp(),
    async () => {
      if (random(3) > 0) return
      revision = String(random(3))
      filters.setDefinitions([marking(revision)])
    },
    async () => {
      if (random(3) > 0) return
      // As in a restart: nobody is answered, then what was known is gone, and something has
      // changed meanwhile.
      const started = Promise.withResolvers<void>()
      handle = async (exchange) => {
        await started.promise
        return handle(exchange)
      }
      for (const client of clients) client.hangUp()
      shown = new ShownStates()
      if (random(2) === 0) poolNodes = some()
      if (random(4) === 0) revision = String(random(3))
      start()
      started.resolve()
    },
  ]
  let checks = 0
  const check = async (): Promise<void> => {
    // The last event comes after everything before.
    const last = `last-${checks++}`
    collection.put(last)
    await Promise.all(clients.map((client) => client.until(last)))
    const fresh = await shownNow(handle)
    for (const [at, client] of clients.entries()) {
      t.strictSame(
        sorted(client.held),
        sorted(fresh),
        `seed ${seed}, check ${checks}, client ${at}`,
      )
    }
  }
  for (let round = 0; round < 8; round++) {
    // Often little happens between: then nothing later makes up for what was missed.
    for (let count = random(2) === 0 ? 2 : 8; count > 0; count--) {
      await steps[random(steps.length)]?.()
      for (let pause = random(20); pause > 0; pause--) await turn()
    }
    await check()
  }
  for (const client of clients) await client.stop()
}

async function shownNow(handle: Handle): Promise<Map<string, string>> {
  const headers = { 'User-Agent': 'somebody/v1' }
  const list = await handle(exchangeOf('/api/v1/services', { headers }))
  if (list.kind !== 'list') throw new Error('no list')
  const shown = new Map<string, string>()
  for await (const { objects } of list.list.batches) {
    for (const each of objects) shown.set(each.name, each.bytes.toString())
  }
  return shown
}

const sorted = (held: ReadonlyMap<string, string>): unknown =>
  [...held].toSorted(([a], [b]) => (a < b ? -1 : 1))

void t.test('whatever happens, a client holds what a fresh list would show it', async (t) => {
  for (let seed = 1; seed <= 12; seed++) await history(t, seed)
})
