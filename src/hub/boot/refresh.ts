import { after, elapsed, jitter, now } from '../../base/clock.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { collectionUrl, pathOf } from '../../api/kube/resources.ts'
import { selectorOfName } from '../../api/kube/selectors.ts'
import { documentTypesOf } from '../../api/request/document-type.ts'
import { isDiscovery } from '../store/document.ts'
import { schemaIndex } from './on-site-documents.ts'
import type { CachedDocument, KubeletCache } from './kubelet-cache.ts'
import type { NeededObject, NodePods } from './needs.ts'
import { keyOf, type ObjectReference } from './references.ts'
import type { RefreshResult } from './verdict.ts'

/** A GET as the kubelet sends it. */
export interface RefreshRequest {
  /** Path and query. */
  readonly url: string
  readonly accept: string
}

/**
 * The result of a refresh. `confirmed`: the store holds what the API server answered, an empty list
 * included.
 */
export type RefreshOutcome = RefreshResult['outcome']

export interface RefreshParts {
  readonly pods: NodePods
  readonly cache: () => KubeletCache
  /** Documents to read although the kubelet does not. Called for each scan. */
  readonly documents: (cache: KubeletCache) => readonly RefreshRequest[]
  /**
   * Sends the request as the node and records the answer as one to the kubelet. Does not reject.
   */
  readonly request: (question: RefreshRequest) => Promise<RefreshOutcome>
  readonly online: () => boolean
  /** Interval between two refreshes of an object, in milliseconds; 0: no refreshes. */
  readonly everyMs: () => number
  /**
   * The API server forbids the node an object that one of its pods needs. Called once for each
   * object.
   */
  readonly onForbidden: (of: ObjectReference) => void
  /** A pass failed unexpectedly; another one follows. */
  readonly onFailure: (cause: unknown) => void
}

/** A collection confirmed within this time is being watched: bookmarks come about once a minute. */
const watchedMs = 150_000

/** How often the refresher looks for new pods, and for what is due. */
const passMs = 1_000

const maxConcurrent = 2
const firstRetryMs = 10_000
const lastRetryMs = 60 * 60_000

/** More than the pods of a node refer to; further objects wait until others are confirmed. */
const maxTargets = 5_000

/**
 * Documents change only with API server releases and custom resource definitions, and are larger
 * than most objects: their interval is this many times as long.
 */
const documentFactor = 12

/** Schemas are large. */
const schemaFactor = 24 * 7 * documentFactor

/** The refreshes of one object or document. Times are of the clock of `elapsed`. */
interface RefreshState {
  /** Absent: it was not requested yet. */
  readonly last?: RefreshResult
  readonly requestedAt: number
  readonly dueAt: number
  /** In a row. An answer that the store did not keep counts as one. */
  readonly failures: number
}

/**
 * Refreshes in the store the objects that a kubelet reads once or by name: claims, volumes,
 * attachments, its CSINode, and all that it does not watch. Refreshes only objects that a pod of
 * the node refers to or the kubelet has read itself, a few objects at a time, each at a time of its
 * own, never while offline. An object that is not stored is requested as soon as a pod refers to
 * it.
 */
export class Refresher implements Disposable {
  readonly #parts: RefreshParts
  readonly #states = new Map<string, RefreshState>()
  #closed = false
  /** The number of the changes of references, of the last look at all targets. */
  #changes = -1
  /** When the next of the targets becomes due, or was. */
  #soonest = 0

  constructor(parts: RefreshParts) {
    this.#parts = parts
    void this.#run()
  }

  /**
   * The result of the last refresh of an object; `undefined`: there was none since the hub started.
   */
  lastResult(of: ObjectReference): RefreshResult | undefined {
    return this.#states.get(keyOf(of))?.last
  }

  /**
   * An API server is healthy again. Refreshes that have become due offline are spread over a while,
   * as all other nodes refresh at the same time.
   */
  cameOnline(): void {
    const present = elapsed()
    for (const [key, state] of this.#states) {
      const dueAt = present + jitter(0, this.#parts.everyMs() / 10)
      if (state.dueAt < present) this.#states.set(key, { ...state, dueAt })
    }
    this.#soonest = 0
  }

  [Symbol.dispose](): void {
    this.#closed = true
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      let isFollowed = false
      try {
        if (this.#mayRequest()) isFollowed = await this.#refreshDue()
      } catch (cause) {
        this.#parts.onFailure(cause)
      }
      if (!isFollowed) await pause(passMs * jitter(0.9, 1.1))
    }
  }

  /** Resolves to whether objects were refreshed, which may lead to more. */
  async #refreshDue(): Promise<boolean> {
    const due = await this.#due()
    const objects = due.filter(({ reference }) => reference !== undefined)
    if (objects.length === 0) {
      await this.#refreshDocuments(due)
      return false
    }
    const turns = objects.values()
    await Promise.all(Array.from({ length: maxConcurrent }, () => this.#refreshInTurn(turns)))
    return true
  }

  /** One at a time, and only while nothing is due that a pod needs: the link may be thin. */
  async #refreshDocuments(due: readonly RefreshTarget[]): Promise<void> {
    const { pods, cache } = this.#parts
    for (const each of due) {
      if (!this.#mayRequest() || (await pods.update(cache())) !== this.#changes) return
      await this.#refresh(each)
    }
  }

  #mayRequest(): boolean {
    return !this.#closed && this.#parts.online() && this.#parts.everyMs() > 0
  }

  async #refreshInTurn(due: Iterator<RefreshTarget>): Promise<void> {
    for (let next = due.next(); !next.done && this.#mayRequest(); next = due.next())
      await this.#refresh(next.value)
  }

  async #refresh(target: RefreshTarget): Promise<void> {
    const outcome = await this.#parts.request(target.request)
    // A failure of the link is no result for the object.
    if (this.#mayRequest() || outcome !== 'failed') this.#note(target, outcome)
    await pause(jitter(5, 50))
  }

  #note({ key, reference, intervalFactor, state }: RefreshTarget, outcome: RefreshOutcome): void {
    const before = this.#states.get(key)
    if (reference && outcome === 'forbidden' && before?.last?.outcome !== outcome)
      this.#parts.onForbidden(reference)
    const requestedAt = elapsed()
    const isAnswered = outcome === 'confirmed' || outcome === 'absent'
    // An answer that the disk does not keep is a failure: the hub backs off rather than repeat the
    // request all the time.
    const failures = isAnswered && isStored(state) ? 0 : (before?.failures ?? 0) + 1
    // An API server may refuse at first, until its authorizer has seen the pod.
    const waitMs = isAnswered
      ? this.#parts.everyMs() * intervalFactor
      : Math.min(waitAfter(failures, firstRetryMs), lastRetryMs)
    const confirmedAt = isAnswered ? now() : before?.last?.confirmedAt
    this.#states.set(key, {
      last: { outcome, ...(confirmedAt !== undefined && { confirmedAt }) },
      requestedAt,
      dueAt: requestedAt + waitMs * jitter(0.8, 1.2),
      failures,
    })
  }

  /** The targets to refresh now. Drops the states of objects that no pod refers to any more. */
  async #due(): Promise<RefreshTarget[]> {
    const cache = this.#parts.cache()
    const changes = await this.#parts.pods.update(cache)
    if (changes === this.#changes && elapsed() < this.#soonest) return []
    const targets = await refreshTargets(this.#parts, cache)
    for (const key of this.#states.keys()) {
      if (!targets.has(key)) this.#states.delete(key)
    }
    this.#changes = changes
    const everyMs = this.#parts.everyMs()
    let soonest = elapsed() + everyMs / 10
    const due = [...targets.values()].filter((each) => {
      const dueAt = this.#dueAt(each, this.#states.get(each.key) ?? this.#first(each))
      soonest = Math.min(soonest, dueAt)
      return dueAt <= elapsed()
    })
    // To look at all targets for each that becomes due would take more than to refresh it. What is
    // refreshed may lead to more at once.
    this.#soonest = due.length > 0 ? 0 : Math.max(soonest, elapsed() + everyMs / 30)
    return due
  }

  /**
   * An object that is stored was read by the kubelet, or refreshed by the hub before it restarted.
   */
  #first({ key, state }: RefreshTarget): RefreshState {
    const dueAt = elapsed() + (isStored(state) ? jitter(0, this.#parts.everyMs() / 10) : 0)
    const first = { dueAt, requestedAt: 0, failures: 0 }
    this.#states.set(key, first)
    return first
  }

  /**
   * When a target is due: as computed after its last refresh, but sooner or later depending on the
   * store's present state.
   */
  #dueAt(target: RefreshTarget, { last, dueAt, requestedAt, failures }: RefreshState): number {
    const everyMs = this.#parts.everyMs()
    const outcome = last?.outcome ?? 'confirmed'
    // Its state is not final, or the store did not keep it or cannot read it.
    if (outcome === 'confirmed' && !(target.state === 'final' || target.state === 'absent')) {
      const firstMs = Math.min(firstRetryMs, everyMs / 10)
      return Math.min(dueAt, requestedAt + waitAfter(failures, firstMs))
    }
    // The kubelet may have read it since, or watch it. A time in the future was recorded before the
    // clock was set back, and does not count.
    const age = now() - target.confirmedAt
    const freshMs = Math.max(target.intervalFactor * everyMs * 0.8, target.watchedMs)
    return Math.max(dueAt, age < 0 ? 0 : elapsed() + freshMs - age)
  }
}

/** An object or document to keep fresh. */
interface RefreshTarget extends Pick<NeededObject, 'state' | 'confirmedAt'> {
  readonly key: string
  readonly request: RefreshRequest
  /** So long after it was confirmed a watch keeps it fresh. */
  readonly watchedMs: number
  /** Multiple of the refresh interval. */
  readonly intervalFactor: number
  /** Absent for a document. */
  readonly reference?: ObjectReference
}

/** Whether anything of it is stored, if only that it does not exist. */
const isStored = (state: NeededObject['state']): boolean =>
  state !== undefined && state !== 'damaged'

/** Doubles with each failure in a row. */
const waitAfter = (failures: number, firstMs: number): number =>
  firstMs * 2 ** Math.max(failures - 1, 0)

/** Does not keep the process running. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => void after(ms, resolve))

const urlOf = ({ gvr, namespace, name, by }: ObjectReference): string =>
  by === 'get'
    ? pathOf(gvr, namespace, name)
    : collectionUrl(gvr, namespace, { fieldSelector: selectorOfName(name) })

const targetOf = (needed: NeededObject, accept: string): RefreshTarget => ({
  key: keyOf(needed),
  request: { url: urlOf(needed), accept },
  state: needed.state,
  confirmedAt: needed.confirmedAt,
  // A watch has it fresher than a refresh, and a list would drop the watch's event log.
  watchedMs: needed.by === 'get' ? 0 : watchedMs,
  intervalFactor: 1,
  reference: needed,
})

const documentTarget = (request: RefreshRequest, stored?: CachedDocument): RefreshTarget => ({
  key: JSON.stringify([request.url, request.accept]),
  request,
  state: stored && 'final',
  confirmedAt: stored?.confirmedAt ?? 0,
  watchedMs: 0,
  intervalFactor: isSchema(request.url) ? schemaFactor : documentFactor,
})

const isSchema = (url: string): boolean => url.startsWith('/openapi/') && url !== schemaIndex

/**
 * The documents to keep fresh: those that are wanted, stored or not, and other discovery that is
 * stored. Other OpenAPI is too large for a thin link.
 */
function* documentTargets(
  documents: readonly RefreshRequest[],
  stored: readonly CachedDocument[],
): Generator<RefreshTarget> {
  const held = new Set<CachedDocument>()
  for (const wanted of documents) {
    const types: readonly string[] = documentTypesOf(wanted.accept)
    const known = stored.find(({ url, accept }) => url === wanted.url && types.includes(accept))
    if (known) held.add(known)
    yield documentTarget(wanted, known)
  }
  for (const document of stored) {
    if (isDiscovery(document.url) && !held.has(document)) yield documentTarget(document, document)
  }
}

/** All targets; none before a kubelet has listed its pods. */
async function refreshTargets(
  { pods, documents }: Pick<RefreshParts, 'pods' | 'documents'>,
  cache: KubeletCache,
): Promise<ReadonlyMap<string, RefreshTarget>> {
  const targets = new Map<string, RefreshTarget>()
  const needs = await pods.needs(cache)
  if (needs.pods === undefined) return targets
  for (const target of documentTargets(documents(cache), cache.documents()))
    targets.set(target.key, target)
  const accept = cache.encodings.map((encoding) => mediaType(encoding)).join(',')
  for (const needed of needs.objects) {
    const isUnread = needed.need === 'if-requested' && needed.state === undefined
    // A kubelet watches the lists that it keeps of all objects.
    if (isUnread || needed.by === 'listed') continue
    if (targets.size < maxTargets) targets.set(keyOf(needed), targetOf(needed, accept))
  }
  return targets
}
