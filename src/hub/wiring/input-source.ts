import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import {
  HubInformer,
  unreadable,
  type InformerObject,
  type InformerState,
  type InformerTarget,
} from '../cache/hub-informer.ts'
import type { Cloud } from '../upstream/cloud.ts'
import type { HubContext } from './hub-context.ts'
import { logFailure } from './log-failure.ts'

export interface SourceParts extends HubContext {
  readonly cloud: Cloud
  /** Reads from an API server or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
}

interface Collection<T> {
  readonly of: InformerTarget
  /** The one object that it is about, for people; absent: there may be any number. */
  readonly about?: string
  /** What is read of an object; `undefined`: nothing. */
  read(object: InformerObject): unknown
  /** What all objects say; `undefined`: nothing, and `last` holds. */
  value(items: ReadonlyMap<string, unknown>, last: T | undefined): T | undefined
}

/** A collection of the cluster, and what it says to filters. */
export class InputSource<T> implements AsyncDisposable {
  /** What it said last, though it may not be read any more. */
  value: T | undefined
  /** Whether there was an answer, be it a refusal; offline that of the cache, be it none. */
  isAnswered = false
  /** Whether the object, or the resource itself, does not exist, by its last answer. */
  isAbsent = false
  readonly informer: HubInformer<unknown>
  readonly #metrics: HubMetrics
  readonly #resource: string
  readonly #about: string | undefined
  #state: InformerState = { kind: 'syncing' }
  #saysNothing = false
  #isOver = false

  /** `onChange` is called with each change of the value or the state. */
  constructor(
    parts: SourceParts,
    { of, about, ...collection }: Collection<T>,
    onChange: () => void,
  ) {
    const { cloud, dispatch, metrics, log } = parts
    const resource = qualifiedResource(of.versions[0])
    this.#metrics = metrics
    this.#about = about
    this.#resource = resource
    const become = (state: InformerState): void => {
      if (this.#isOver) return
      const before = this.fault
      this.#state = state
      this.isAnswered ||= this.isSettled || (state.kind === 'failed' && cloud.online === false)
      // Other answers and failures do not tell.
      if (state.kind === 'synced') this.isAbsent = this.#saysNothing
      if (state.kind === 'refused' && state.code === 404) this.isAbsent = true
      this.#show(state)
      const { fault } = this
      if (fault !== undefined && fault !== before) log.warn(`filters ${fault}`)
      onChange()
    }
    this.informer = new HubInformer<unknown>({
      of,
      read: (object) => collection.read(object),
      ask: dispatch,
      linkChanged: () => cloud.onlineChanged,
      onValues: (items) => {
        const value = collection.value(items, this.value)
        this.#saysNothing = value === undefined
        this.value = value ?? this.value
        become({ kind: 'synced' })
      },
      onState: become,
      onFailed: (err) =>
        logFailure(log, 'debug', { err, resource }, 'cannot read an input of filters'),
    })
  }

  /** Whether the first answer is still to come. */
  get isSyncing(): boolean {
    return this.#state.kind === 'syncing'
  }

  /** Whether its last answer stands: the objects, or a refusal. */
  get isSettled(): boolean {
    return this.#state.kind === 'synced' || this.#state.kind === 'refused'
  }

  /** What is missing, as the continuation of a sentence that begins with “filters”. */
  get fault(): string | undefined {
    const [state, resource] = [this.#state, this.#resource]
    if (state.kind === 'refused') {
      const { why, advice } = unreadable(state.code)
      const because =
        state.code === 404
          ? `the API server knows no such resource, its CustomResourceDefinition is missing (404)`
          : `${why} (${state.code})${advice}`
      return `cannot read ${resource}: ${because}; ${consequence}`
    }
    return state.kind === 'synced' && this.isAbsent && this.#about !== undefined
      ? `know nothing of ${this.#about}: there is none; ${consequence}`
      : undefined
  }

  #show(state: InformerState): void {
    const [resource = ''] = this.#resource.split('.')
    const code = state.kind === 'refused' ? state.code : 0
    const shown = {
      forbidden: code === 403,
      absent: code === 404,
      refused: ![0, 403, 404].includes(code),
    }
    for (const [reason, is] of Object.entries(shown))
      this.#metrics.filterInputMissing.set({ resource, reason }, is ? 1 : 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    this.#show({ kind: 'syncing' })
    await this.informer[Symbol.asyncDispose]()
  }
}

/** How filters act without an input. */
const consequence = 'they keep its last value, or act without it'
