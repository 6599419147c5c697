import { lruCache } from '../../base/lru-cache.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import {
  compareVersions,
  isNewer,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { Identity } from '../../api/request/identity.ts'
import { isSameState, type ChainState } from './chain-state.ts'

/**
 * A collection as one component reads it with one identity. The encoding makes no difference to
 * what filters decide; whether the client gets whole objects does.
 */
export interface ClientCollection {
  readonly identity: Identity
  readonly component: string
  readonly gvr: GVR
  readonly namespace: string | undefined
  readonly labelSelector: string
  readonly fieldSelector: string
  /** The client gets PartialObjectMetadata, or rows of a Table. */
  readonly isPartial?: true
}

/** The chain state that applied to a collection from a version on. */
interface Era {
  readonly state: ChainState
  /** '': unknown, so the state may have applied at any version. */
  from: string
  /**
   * Whether a client that resumes from `from` itself has seen all of the collection under this
   * state.
   */
  isSure: boolean
}

interface CollectionHistory {
  readonly eras: Era[]
  /**
   * Whether a client has ever listed it here. A client that never does is sent to list only once.
   */
  isListed: boolean
  /** Pending until the newest era is on the disk. */
  written: Promise<void> | undefined
}

/** More than the components of a node have collections. */
export const mostCollections = 2_048

/** How many states are compared; beyond that, the client has to list again. */
export const mostEras = 4

/**
 * Records under which states of its filter chain each collection was delivered to its clients, and
 * from which version on. These, and the version that a client resumes from, show which objects the
 * client holds. Two clients with the same key and version cannot be distinguished: once the first
 * one has the changes of a new state, or has listed under it, the second counts as up to date, too,
 * until its version is newer. The history is kept in `file`, and is on the disk before anything is
 * delivered under a new state; without a file, it lasts as long as this process. Disposing waits
 * for pending writes.
 */
export class ChainStateHistory implements AsyncDisposable {
  readonly #file: StateFile | undefined
  readonly #onFailure: (cause: unknown) => void
  readonly #histories = lruCache<string, CollectionHistory>(mostCollections)

  /** Calls `onFailure` when the file cannot be written. */
  constructor(file?: string, onFailure: (cause: unknown) => void = () => undefined) {
    this.#file = file === undefined ? undefined : new StateFile(file, () => this.#content())
    this.#onFailure = onFailure
    // If the file is lost, clients have to list again once.
    const states: ChainState[] = []
    for (const entry of file === undefined ? [] : storedEntries(file, isEntry)) {
      if ('inputs' in entry) states.push(entry)
      else this.#restore(entry, states)
    }
  }

  #restore(
    { audience: collection, eras, isListed }: StoredHistory,
    states: readonly ChainState[],
  ): void {
    const history = eras.flatMap(({ state: at, ...era }): Era[] => {
      const state = states[at]
      return state ? [{ ...era, state }] : []
    })
    // An incomplete history allows no conclusion.
    if (history.length < eras.length) return
    this.#histories.set(collection, { eras: history, isListed, written: undefined })
  }

  /** Whether the collection has a history. */
  has(collection: ClientCollection): boolean {
    return this.#histories.has(keyOf(collection))
  }

  /**
   * The states under which a client that resumes from `version` may have received objects.
   * `undefined`: perhaps under others, which are unknown.
   */
  statesAt(
    collection: ClientCollection,
    version: ResourceVersion | undefined,
  ): ChainState[] | undefined {
    const history = this.#histories.get(keyOf(collection))
    if (!history) return undefined
    const states: ChainState[] = []
    for (const { state, from, isSure } of history.eras.toReversed()) {
      if (!states.some((each) => isSameState(each, state))) states.push(state)
      if (from === '') {
        if (isSure) return states
        continue
      }
      const begun = resourceVersion(from)
      if (version === undefined || begun === undefined) continue
      const order = compareVersions(begun, version)
      // A version newer than the start of the state was delivered under it, and so was everything
      // before.
      if (order < 0 || (order === 0 && isSure)) return states
    }
    const [oldest] = history.eras
    return oldest?.from === '' ? states : undefined
  }

  /**
   * Records that the collection is delivered under `state` from now on: to a client at `from`, or
   * at any version. Resolves when the record is on the disk, or cannot be written; `undefined`: it
   * already is.
   */
  begin(
    collection: ClientCollection,
    state: ChainState,
    from?: ResourceVersion,
  ): Promise<void> | undefined {
    const history = this.#historyOf(collection)
    const newest = history.eras.at(-1)
    if (newest && isSameState(newest.state, state)) {
      // Another client of the collection is at a version of its own.
      if (from === undefined && !history.isListed) newest.from = ''
      return history.written
    }
    history.eras.push({ state, from: from ?? '', isSure: false })
    this.#shorten(history)
    return this.#write(history)
  }

  /** Records a list of the collection at `version`, under `state`. */
  recordList(collection: ClientCollection, state: ChainState, version: string): void {
    const history = this.#historyOf(collection)
    const newest = history.eras.at(-1)
    if (!newest || !isSameState(newest.state, state)) {
      // Meanwhile another client was given another state. Which of the two a client at this version
      // has is unknown.
      history.eras.push({ state, from: version, isSure: false })
      if (newest) history.eras.push(lastingBeyond(newest, version))
      this.#shorten(history)
    } else {
      const [listed, begun] = [resourceVersion(version), resourceVersion(newest.from)]
      const order = begun && listed ? compareVersions(listed, begun) : 1
      // Under an earlier state, another client may have a newer version than this list.
      const isFirst = !begun || order === 0 || (order < 0 && history.eras.length === 1)
      const isBeforeAll = !isFirst && isNewer(history.eras[0]?.from, version)
      const isKnown = !isBeforeAll && (!isFirst || (newest.isSure && newest.from === version))
      if (history.isListed && isKnown) return
      if (isFirst) newest.from = version
      newest.isSure ||= isFirst
      if (isBeforeAll) this.#prepend(history, state, version)
    }
    history.isListed = true
    void this.#write(history)
  }

  /** Records that a client had the time to receive the events sent at the beginning of `state`. */
  recordDelivery(collection: ClientCollection, state: ChainState): void {
    const history = this.#histories.get(keyOf(collection))
    const newest = history?.eras.at(-1)
    if (!history || !newest || newest.isSure || !isSameState(newest.state, state)) return
    if (newest.from === '') return
    newest.isSure = true
    void this.#write(history)
  }

  /**
   * Records that a client has to list: its objects count as delivered under `state` afterwards,
   * even if it does not list here.
   */
  recordRelist(collection: ClientCollection, state: ChainState): void {
    const history = this.#historyOf(collection)
    if (history.isListed) return
    history.eras.splice(0, Infinity, { state, from: '', isSure: true })
    void this.#write(history)
  }

  #historyOf(collection: ClientCollection): CollectionHistory {
    const key = keyOf(collection)
    const history = this.#histories.get(key)
    if (history) return history
    const unknown: CollectionHistory = { eras: [], isListed: false, written: undefined }
    this.#histories.set(key, unknown)
    return unknown
  }

  /**
   * A list at a version before all eras is of a restored cluster, or by an API server that lags
   * behind. The eras stay, as another client may be at their versions: a client at this one counts
   * as having seen their states, too, which has it sent more events.
   */
  #prepend({ eras }: CollectionHistory, state: ChainState, version: string): void {
    const [oldest] = eras
    if (oldest?.isSure && isSameState(oldest.state, state)) oldest.from = version
    else eras.unshift({ state, from: version, isSure: true })
  }

  #shorten({ eras }: CollectionHistory): void {
    eras.splice(0, Math.max(eras.length - mostEras, 0))
  }

  #write(history: CollectionHistory): Promise<void> | undefined {
    if (!this.#file) return undefined
    const written = this.#file.write().catch((cause: unknown) => {
      this.#onFailure(cause)
    })
    history.written = written
    return written.then(() => {
      if (history.written === written) history.written = undefined
    })
  }

  /**
   * The states, each once, then the histories, least recently used first: the order in which they
   * have to be set again.
   */
  #content(): string {
    const states = new Map<string, { readonly at: number; readonly state: ChainState }>()
    const indexOf = (state: ChainState): number => {
      const key = `${state.acts} ${state.chain} ${state.inputs}`
      const history = states.get(key) ?? { at: states.size, state }
      states.set(key, history)
      return history.at
    }
    const histories = [...this.#histories.rkeys()].map((collection): StoredHistory => {
      const { eras = [], isListed = false } = this.#histories.peek(collection) ?? {}
      return {
        audience: collection,
        isListed,
        eras: eras.map(({ state, ...era }) => ({ ...era, state: indexOf(state) })),
      }
    })
    const all = [...states.values()].map(({ state }) => state)
    return JSON.stringify([...all, ...histories] satisfies readonly Entry[])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.[Symbol.asyncDispose]()
  }
}

/** The same era for clients with newer versions than this, which go on under its state. */
const lastingBeyond = ({ state, from, isSure }: Era, version: string): Era =>
  from === '' || isNewer(from, version)
    ? { state, from, isSure }
    : { state, from: version, isSure: false }

/**
 * The content of the file: states, which histories refer to by index. The field names are those of
 * files that are in use.
 */
type Entry = ChainState | StoredHistory

interface StoredHistory {
  readonly audience: string
  readonly eras: readonly (Omit<Era, 'state'> & { readonly state: number })[]
  readonly isListed: boolean
}

const keyOf = ({ identity, component, gvr, ...within }: ClientCollection): string =>
  JSON.stringify([
    identity,
    component,
    gvr.group,
    gvr.version,
    gvr.resource,
    within.namespace ?? null,
    within.labelSelector,
    within.fieldSelector,
    ...(within.isPartial ? ['parts'] : []),
  ])

const isEntry = (entry: unknown): entry is Entry => isState(entry) || isStoredHistory(entry)

function isState(entry: unknown): entry is ChainState {
  const { chain, inputs, acts } = (entry ?? {}) as Partial<ChainState>
  return typeof chain === 'string' && typeof inputs === 'string' && typeof acts === 'boolean'
}

function isStoredHistory(entry: unknown): entry is StoredHistory {
  const { audience, eras, isListed } = (entry ?? {}) as Partial<StoredHistory>
  return (
    typeof audience === 'string' &&
    typeof isListed === 'boolean' &&
    Array.isArray(eras) &&
    eras.every(isKeptEra)
  )
}

function isKeptEra(era: unknown): boolean {
  const { state, from, isSure } = (era ?? {}) as Partial<StoredHistory['eras'][number]>
  return typeof state === 'number' && typeof from === 'string' && typeof isSure === 'boolean'
}
