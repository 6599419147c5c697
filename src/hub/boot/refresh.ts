import { after, jitter, now } from '../../base/clock.ts'
import { TimeSlices } from '../../base/time-slices.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import * as resources from '../../api/kube/resources.ts'
import { StoreFailure } from '../store/store.ts'
import { documentTypesOf } from '../../api/request/document-type.ts'
import { schemaIndex } from './on-site-documents.ts'
import { podsOf, type CachedDocument, type KubeletCache } from './kubelet-cache.ts'
import { bootPods, type NodeRecords } from './node-dependencies.ts'
import { isSettled, resolveReference, type ResolvedReference } from './pod-dependencies.ts'
import { requiredObject, type ObjectReference } from './references.ts'
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

export interface RefreshParts extends Pick<NodeRecords, 'nodeName' | 'references'> {
  readonly cache: () => KubeletCache
  /** Documents to read although the kubelet does not. Called for each scan. */
  readonly documents: (cache: KubeletCache) => readonly RefreshRequest[]
  /** Differs after every change of the pods. Called often. */
  readonly podsVersion: () => string | undefined
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

/** Pods rarely come alone: several changes share one pass. */
const settleMs = 500

/**
 * The share of the time that scans of the pods may take. Nearly every change is one of a status,
 * which adds no reference. At 100 changes a second to 500 pods a fiftieth was 200 us for each.
 */
const scanShare = 0.004

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

/** The state of the refreshes of one object or document. */
interface RefreshState extends RefreshResult {
  /**
   * When this was written. A time in the future means that the clock was set back since: the state
   * does not count then.
   */
  readonly notedAt: number
  readonly dueAt: number
  readonly requestedAt: number
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
  #timer: Disposable | undefined
  #timerAt = Infinity
  #running = false
  #closed = false
  #seen: string | undefined
  /** When the next of the targets that were not due becomes due. */
  #soonest = Infinity
  /** Duration of the last two scans of the pods. */
  #tookMs: readonly [number, number] = [0, 0]

  constructor(parts: RefreshParts) {
    this.#parts = parts
  }

  /**
   * The result of the last refresh of an object; `undefined`: there was none since the hub started.
   */
  lastResult(of: ObjectReference): RefreshResult | undefined {
    const found = this.#states.get(keyOf(of))
    return found && found.requestedAt > 0 ? found : undefined
  }

  /**
   * Something was committed to the store: perhaps a pod has come. Cheap, and may be called for
   * every commit.
   */
  storeChanged(): void {
    const wait = this.#settleMs()
    if (this.#closed || this.#running || this.#timerAt <= now() + wait) return
    if (this.#parts.podsVersion() === this.#seen) return
    this.#schedule(jitter(wait / 2, wait))
  }

  /**
   * An API server is healthy again. Refreshes that have become due offline are spread over a while,
   * as all other nodes refresh at the same time.
   */
  cameOnline(): void {
    const spread = this.#parts.everyMs() / 10
    const present = now()
    for (const [key, state] of this.#states) {
      if (state.dueAt >= present) continue
      const dueAt = present + jitter(0, spread)
      this.#states.set(key, { ...state, notedAt: present, dueAt })
    }
    this.#schedule(jitter(0, settleMs))
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#timer?.[Symbol.dispose]()
  }

  #schedule(ms: number): void {
    if (this.#closed) return
    this.#timer?.[Symbol.dispose]()
    this.#timerAt = now() + ms
    this.#timer = after(ms, () => {
      this.#timerAt = Infinity
      void this.#pass()
    })
  }

  async #pass(): Promise<void> {
    if (this.#running || !this.#mayRequest()) return
    this.#running = true
    try {
      // A claim leads to a volume, a volume to its attachment and secrets: three steps, and one to
      // see that there is no more.
      for (let step = 0; step < 4; step++) {
        this.#seen = this.#parts.podsVersion()
        const due = await this.#due()
        const objects = due.filter(({ reference }) => reference !== undefined)
        if (objects.length === 0) {
          await this.#refreshDocuments(due)
          break
        }
        const turns = objects.values()
        await Promise.all(Array.from({ length: maxConcurrent }, () => this.#refreshInTurn(turns)))
      }
    } catch (cause) {
      this.#parts.onFailure(cause)
    } finally {
      this.#running = false
    }
    // A pod may have come during the pass.
    const isSeen = this.#parts.podsVersion() === this.#seen
    this.#schedule(isSeen ? this.#untilNext() : this.#settleMs())
  }

  /** One at a time, and only while nothing is due that a pod needs: the link may be thin. */
  async #refreshDocuments(due: readonly RefreshTarget[]): Promise<void> {
    for (const each of due) {
      if (!this.#mayRequest() || this.#parts.podsVersion() !== this.#seen) return
      await this.#refresh(each)
      await pause(jitter(5, 50))
    }
  }

  /** How long changes of pods wait for a scan: scans take at most `scanShare` of the time. */
  #settleMs(): number {
    return Math.max(settleMs, Math.min(...this.#tookMs) / scanShare)
  }

  /** Going online later schedules another pass. */
  #mayRequest(): boolean {
    return !this.#closed && this.#parts.online() && this.#parts.everyMs() > 0
  }

  async #refreshInTurn(due: Iterator<RefreshTarget>): Promise<void> {
    for (let next = due.next(); !next.done && this.#mayRequest(); next = due.next()) {
      await this.#refresh(next.value)
      await pause(jitter(5, 50))
    }
  }

  async #refresh(target: RefreshTarget): Promise<void> {
    const outcome = await this.#parts.request(target.request)
    // A failure of the link is no result for the object.
    if (this.#mayRequest() || outcome !== 'failed') this.#note(target, outcome)
  }

  #note({ key, reference, intervalFactor, known }: RefreshTarget, outcome: RefreshOutcome): void {
    const before = this.#states.get(key)
    if (reference && outcome === 'forbidden' && before?.outcome !== outcome)
      this.#parts.onForbidden(reference)
    const requestedAt = now()
    const isAnswered = outcome === 'confirmed' || outcome === 'absent'
    // An answer that the disk does not keep is a failure: the hub backs off rather than repeat the
    // request all the time.
    const failures = isAnswered && known ? 0 : (before?.failures ?? 0) + 1
    // An API server may refuse at first, until its authorizer has seen the pod.
    const waitMs = isAnswered
      ? this.#parts.everyMs() * intervalFactor
      : Math.min(waitAfter(failures, firstRetryMs), lastRetryMs)
    const confirmedAt = isAnswered ? requestedAt : before?.confirmedAt
    this.#states.set(key, {
      outcome,
      requestedAt,
      notedAt: requestedAt,
      dueAt: requestedAt + waitMs * jitter(0.8, 1.2),
      failures,
      ...(confirmedAt !== undefined && { confirmedAt }),
    })
  }

  /** The targets to refresh now. Drops the states of objects that no pod refers to any more. */
  async #due(): Promise<RefreshTarget[]> {
    const { cache, nodeName, documents, references } = this.#parts
    const { targets, tookMs } = await refreshTargets({
      nodeName,
      cache: cache(),
      documents,
      references,
      isOver: () => this.#closed,
    })
    this.#tookMs = [tookMs, this.#tookMs[0]]
    for (const key of this.#states.keys()) {
      if (!targets.has(key)) this.#states.delete(key)
    }
    const present = now()
    this.#soonest = Infinity
    return [...targets.values()].filter((each) => {
      const noted = this.#states.get(each.key)
      const state = noted && noted.notedAt <= present ? noted : this.#first(each)
      const dueAt = this.#dueAt(each, state)
      if (dueAt <= present) return true
      this.#soonest = Math.min(this.#soonest, dueAt)
      return false
    })
  }

  /**
   * An object that is stored was read by the kubelet, or refreshed by the hub before it restarted.
   */
  #first({ key, known }: RefreshTarget): RefreshState {
    const wait = known ? jitter(0, this.#parts.everyMs() / 10) : 0
    const notedAt = now()
    const dueAt = notedAt + wait
    const state = { outcome: 'confirmed', notedAt, dueAt, requestedAt: 0, failures: 0 } as const
    this.#states.set(key, state)
    return state
  }

  /**
   * When a target is due: as computed after its last refresh, but sooner or later depending on the
   * store's present state.
   */
  #dueAt(target: RefreshTarget, state: RefreshState): number {
    const everyMs = this.#parts.everyMs()
    const { dueAt, requestedAt, failures } = state
    if (isUnfinished(target, state)) {
      const firstMs = Math.min(firstRetryMs, everyMs / 10)
      return Math.min(dueAt, requestedAt + waitAfter(failures, firstMs))
    }
    // The kubelet may have read it since, or watch it.
    const freshUntil = target.confirmedAt + target.intervalFactor * everyMs * 0.8
    return Math.max(dueAt, freshUntil, target.watchedUntil)
  }

  #untilNext(): number {
    const wait = Math.min(this.#soonest - now(), this.#parts.everyMs() / 10)
    return Math.max(wait, settleMs) * jitter(0.9, 1.1)
  }
}

/** An object or document to keep fresh. */
interface RefreshTarget {
  readonly key: string
  readonly request: RefreshRequest
  /** Whether anything of it is stored, if only that it does not exist. */
  readonly known: boolean
  /** Its state is final: see `isSettled`. */
  readonly settled: boolean
  /**
   * When an API server last confirmed it according to the store, in milliseconds since the epoch;
   * 0: never, or not known.
   */
  readonly confirmedAt: number
  /** A watch keeps it fresh until then. */
  readonly watchedUntil: number
  /** Multiple of the refresh interval. */
  readonly intervalFactor: number
  /** Absent for a document. */
  readonly reference?: ObjectReference
}

/**
 * Whether a confirmed object is to be requested again soon: its state is not final, or it is not in
 * the store, which did not keep it or cannot read it. The same for an object that was not requested
 * yet and is not stored.
 */
const isUnfinished = ({ known, settled }: RefreshTarget, { outcome }: RefreshState): boolean =>
  outcome === 'confirmed' && !(known && settled)

/** Doubles with each failure in a row. */
const waitAfter = (failures: number, firstMs: number): number =>
  firstMs * 2 ** Math.max(failures - 1, 0)

/** Does not keep the process running. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => void after(ms, resolve))

const keyOf = ({ gvr, namespace, name }: ObjectReference): string =>
  `${qualifiedResource(gvr)}/${namespace}/${name}`

function urlOf({ gvr, namespace, name, by }: ObjectReference): string {
  if (by === 'get') return resources.pathOf(gvr, namespace, name)
  const selector =
    name === '' ? '' : `?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`
  return `${resources.pathOf(gvr, namespace)}${selector}`
}

/** A time in the future was recorded before the clock was set back, and does not count. */
const plausible = (confirmedAt: number): number => (confirmedAt > now() ? 0 : confirmedAt)

function targetOf(needed: ResolvedReference, accept: string): RefreshTarget {
  const { by, found } = needed
  const confirmedAt = plausible(needed.confirmedAt ?? 0)
  return {
    key: keyOf(needed),
    request: { url: urlOf(needed), accept },
    known: found !== undefined,
    settled: isSettled(needed),
    confirmedAt,
    // A watch has it fresher than a refresh, and a list would drop the watch's event log.
    watchedUntil: by === 'get' ? 0 : confirmedAt + watchedMs,
    intervalFactor: 1,
    reference: needed,
  }
}

const documentKeyOf = ({ url, accept }: RefreshRequest): string => JSON.stringify([url, accept])

const documentTarget = (
  { url, accept }: RefreshRequest,
  stored?: CachedDocument,
): RefreshTarget => ({
  key: documentKeyOf({ url, accept }),
  request: { url, accept },
  known: stored !== undefined,
  settled: true,
  confirmedAt: plausible(stored?.confirmedAt ?? 0),
  watchedUntil: 0,
  intervalFactor: isSchema(url) ? schemaFactor : documentFactor,
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
    const isDiscovery = /^\/(?:api|apis|version)(?:[/?]|$)/.test(document.url)
    if (isDiscovery && !held.has(document)) yield documentTarget(document, document)
  }
}

interface Scan extends NodeRecords, Pick<RefreshParts, 'documents'> {
  readonly isOver: () => boolean
}

/**
 * All targets, none before a kubelet has listed its pods; and how long the scan took, without the
 * turns of other work. Stops early when `isOver`.
 */
async function refreshTargets(
  scan: Scan,
): Promise<{ readonly targets: ReadonlyMap<string, RefreshTarget>; readonly tookMs: number }> {
  const { nodeName, cache, documents } = scan
  const targets = new Map<string, RefreshTarget>()
  const slices = new TimeSlices()
  const accept = cache.encodings.map((encoding) => mediaType(encoding)).join(',')
  const add = (needed: ResolvedReference): void => {
    const isUnread = needed.need === 'if-requested' && needed.found === undefined
    // An object in a list of all is as fresh as that list.
    if (isUnread || (needed.by === 'listed' && needed.name !== '')) return
    if (targets.size < maxTargets) targets.set(keyOf(needed), targetOf(needed, accept))
  }
  const listed = cache.collection(podsOf(nodeName))
  if (!listed) return { targets, tookMs: slices.tookMs }
  for (const target of documentTargets(documents(cache), cache.documents()))
    targets.set(target.key, target)
  add(resolveReference(requiredObject(resources.csiNodes, '', nodeName), cache))
  for (const gvr of [resources.csiDrivers, resources.runtimeClasses]) add(listOfAll(gvr, cache))
  try {
    const walk = bootPods(listed, scan, {
      read: ({ objects }) => objects.forEach(add),
      // The boot verdict reports it.
      malformed: () => undefined,
    })
    for (const _pod of walk) {
      await slices.pause()
      if (scan.isOver()) break
    }
  } catch (cause) {
    // The boot verdict reports it; the next answer of an API server repairs it.
    if (!(cause instanceof StoreFailure)) throw cause
  }
  return { targets, tookMs: slices.tookMs }
}

/**
 * A list that the kubelet keeps of all objects of a resource, refreshed only if the kubelet has
 * read it.
 */
const listOfAll = (gvr: ObjectReference['gvr'], cache: KubeletCache): ResolvedReference =>
  resolveReference({ gvr, namespace: '', name: '', by: 'listed', need: 'if-requested' }, cache)
