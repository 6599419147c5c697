import { nodeName } from '../kit/cloud.ts'
import type { Random } from '../fuzz/random.ts'
import { apps, names, namespaces, resources, type Collection, type Resource } from './collection.ts'

/** A client. Clients of one identity and encoding observe the same collections. */
export interface ViewerSetup {
  readonly component: 'kubelet' | 'kube-proxy'
  /** By its socket, or by a token. */
  readonly identity: 'node' | 'account'
  readonly encoding: 'json' | 'protobuf'
}

/** The world that a sequence happens in. */
export interface Setup {
  readonly viewers: readonly ViewerSetup[]
  readonly collections: readonly Collection[]
  /** The hub is a process of its own, which can be killed. */
  readonly child: boolean
  /** Its disk can fail; only where it is a process of its own. */
  readonly disk: boolean
  /** A second API server is so many writes behind; 0: there is none. */
  readonly lag: number
  readonly bookmarkMs: number
  /** At the end, watches are waited for until they end by themselves. */
  readonly patient: boolean
  /** In place of that end, the link is cut, and objects of this name are damaged in the cache. */
  readonly damaged?: string
}

interface ObjectRef {
  readonly resource: Resource
  readonly namespace: string
  readonly name: string
}

interface ByViewer {
  readonly viewer: number
  readonly collection: number
}

/**
 * The resource version of a list request: none, any, the client's newest, an older one, or one that
 * is not issued yet.
 */
export type RequestedVersion = 'none' | 'any' | 'own' | 'older' | 'future'

/**
 * One step of a sequence. A step that does not apply is skipped, so that any subset of a sequence
 * is a sequence.
 */
export type Operation =
  | ({ readonly do: 'write'; readonly app: string } & ObjectRef)
  | ({ readonly do: 'delete' } & ObjectRef)
  | ({
      readonly do: 'list'
      readonly version: RequestedVersion
      readonly match: '' | 'Exact' | 'NotOlderThan'
      readonly limit: number
      /** What comes next does not wait for the answer. */
      readonly loose: boolean
    } & ByViewer)
  | ({
      readonly do: 'get'
      readonly viewer: number
      readonly version: 'none' | 'any'
      readonly loose: boolean
    } & ObjectRef)
  /** A watch that stays open: from its reader's own version, or with all there is first. */
  | ({ readonly do: 'follow'; readonly from: 'own' | 'list' } & ByViewer)
  /** A watch that begins with what there is at any version, and goes on. */
  | ({ readonly do: 'peek' } & ByViewer)
  | ({ readonly do: 'leave' } & ByViewer)
  /** Waits until every watch has delivered its events, or has ended. */
  | { readonly do: 'settle' }
  | { readonly do: 'unplug' | 'plug'; readonly waits: boolean }
  | { readonly do: 'freeze' | 'thaw' }
  /** Every connection is reset, once. */
  | { readonly do: 'reset' }
  /** Waits until the hub knows whether the cloud is online. */
  | { readonly do: 'steady' }
  /** Answers break off after so many bytes during this request. */
  | ({ readonly do: 'cut'; readonly bytes: number; readonly what: 'list' | 'follow' } & ByViewer)
  | { readonly do: 'compact' | 'end-watches' | 'restart' }
  /** The API server that does not lag goes, or comes back. */
  | { readonly do: 'fall-behind' | 'catch-up' }
  /** The hub's disk takes no writes, or cannot sync; or it does both again. */
  | { readonly do: 'fail-disk'; readonly what: 'writes' | 'syncs' }
  | { readonly do: 'heal-disk' }

export interface Sequence {
  readonly setup: Setup
  readonly operations: readonly Operation[]
}

function setupOf(random: Random, childOnceIn: number): Setup {
  const viewers = some(random, 1 + random.below(3), () => viewerOf(random))
  const chosen = some(random, 1 + random.below(2), () =>
    random.of(Object.keys(resources) as Resource[]),
  )
  return {
    viewers,
    collections: some(random, 1 + random.below(3), () => collectionOf(random, random.of(chosen))),
    child: random.once(childOnceIn),
    disk: false,
    lag: random.once(5) ? 1 + random.below(4) : 0,
    bookmarkMs: random.once(2) ? 100 : 60_000,
    patient: random.once(6),
  }
}

const some = <T>(random: Random, count: number, one: (random: Random) => T): T[] =>
  Array.from({ length: count }, () => one(random))

const viewerOf = (random: Random): ViewerSetup => ({
  component: random.of(['kubelet', 'kube-proxy'] as const),
  identity: random.once(3) ? 'account' : 'node',
  encoding: random.of(['json', 'protobuf'] as const),
})

function collectionOf(random: Random, resource: Resource): Collection {
  const fields = ['metadata.name=a', `spec.nodeName=${nodeName}`] as const
  const field = random.of(resource === 'pods' ? fields : fields.slice(0, 1))
  return {
    resource,
    ...(random.once(3) && { namespace: random.of(namespaces) }),
    ...(random.once(3) && { label: random.of(['app=x', 'app!=x', 'app'] as const) }),
    ...(random.once(4) && { field }),
  }
}

export function sequenceOf(random: Random, childOnceIn = 12): Sequence {
  const setup = setupOf(random, childOnceIn)
  const count = 10 + random.below(30)
  const begin = some(random, 2 + random.below(4), () => write(random, setup))
  const operations = [...begin, ...some(random, count, () => operation(random, setup))]
  const disk = setup.child && random.once(2)
  if (!disk) {
    const damaged = random.once(3) ? random.of(names) : undefined
    return { setup: { ...setup, ...(damaged && { damaged }) }, operations }
  }
  const fails = { do: 'fail-disk', what: random.of(['writes', 'syncs'] as const) } as const
  const at = begin.length + random.below(count)
  operations.splice(at, 0, fails)
  // Most stay so until the end.
  if (random.once(3)) operations.splice(at + 1 + random.below(count), 0, { do: 'heal-disk' })
  return { setup: { ...setup, disk }, operations }
}

const placeOf = (random: Random, { collections }: Setup): ObjectRef => ({
  resource: random.of(collections).resource,
  namespace: random.of(namespaces),
  name: random.of(names),
})

const write = (random: Random, setup: Setup): Operation =>
  random.once(3)
    ? { do: 'delete', ...placeOf(random, setup) }
    : { do: 'write', ...placeOf(random, setup), app: random.of(apps) }

function operation(random: Random, setup: Setup): Operation {
  const asks: ByViewer = {
    viewer: random.below(setup.viewers.length),
    collection: random.below(setup.collections.length),
  }
  const drawn = random.below(100)
  if (drawn < 26) return write(random, setup)
  if (drawn < 44) {
    return {
      do: 'list',
      ...asks,
      version: random.of(['none', 'any', 'own', 'none', 'any', 'own', 'older', 'future'] as const),
      match: random.of(['', '', '', 'NotOlderThan', 'Exact'] as const),
      limit: random.once(4) ? 1 + random.below(2) : 0,
      loose: random.once(6),
    }
  }
  if (drawn < 53) {
    return {
      do: 'get',
      viewer: asks.viewer,
      ...placeOf(random, setup),
      version: random.once(3) ? 'any' : 'none',
      loose: random.once(6),
    }
  }
  if (drawn < 68) return { do: 'follow', ...asks, from: random.once(3) ? 'list' : 'own' }
  if (drawn < 70) return { do: 'peek', ...asks }
  if (drawn < 72) return { do: 'leave', ...asks }
  if (drawn < 76) return { do: 'settle' }
  if (drawn < 88) return link(random, setup)
  if (drawn < 91) return { do: 'steady' }
  if (drawn < 95) {
    const what = random.of(['list', 'follow'] as const)
    return { do: 'cut', ...asks, what, bytes: 1 + random.below(random.of([40, 400, 2000])) }
  }
  if (drawn < 97) return { do: 'restart' }
  return { do: random.of(['compact', 'end-watches'] as const) }
}

function link(random: Random, { lag }: Setup): Operation {
  if (lag > 0 && random.once(2)) return { do: random.of(['fall-behind', 'catch-up'] as const) }
  if (random.once(8)) return { do: random.of(['freeze', 'thaw'] as const) }
  if (random.once(6)) return { do: 'reset' }
  return { do: random.of(['unplug', 'plug'] as const), waits: !random.once(3) }
}
