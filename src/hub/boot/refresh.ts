import { after, jitter, now } from '../../base/clock.ts'
import { TimeSlices } from '../../base/time-slices.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import * as resources from '../../api/kube/resources.ts'
import { StoreFailure } from '../store/store.ts'
import { podsOf, type CachedDocument, type KubeletCache } from './kubelet-cache.ts'
import {
  isSettled,
  resolveReference,
  podDependencies,
  type ResolvedReference,
} from './pod-dependencies.ts'
import { PodReferencesByVersion } from './pod-references.ts'
import type { ObjectReference, PodReferences } from './references.ts'
import type { RefreshResult } from './verdict.ts'

/** A question to the cloud, as the kubelet puts it. */
export interface RefreshRequest {
  /** Path and query. */
  readonly url: string
  readonly accept: string
}

/**
 * What came of a question. `confirmed`: what the cloud said is in the store, an empty list
 * included.
 */
export type RefreshOutcome = RefreshResult['outcome']

export interface RefreshParts {
  readonly nodeName: string
  readonly cache: () => KubeletCache
  /** What of the pods' list changes when any of them does; read often. */
  readonly podsVersion: () => string | undefined
  /** Asks as the node, and keeps the answer as if the kubelet had asked. Does not reject. */
  readonly request: (question: RefreshRequest) => Promise<RefreshOutcome>
  readonly online: () => boolean
  /** How often each is asked again, in milliseconds; 0: nothing is ever asked. */
  readonly everyMs: () => number
  /** The API server refuses to tell this node of an object that a pod needs: told once for each. */
  readonly onForbidden: (of: ObjectReference) => void
  /** A round failed unforeseen; there will be a next one. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * A collection that was confirmed so recently has a watch: its bookmarks come about once a minute.
 */
const watchedMs = 150_000

/** Pods rarely come alone. */
const settleMs = 500

/**
 * Where pods change all the time, going through them may take this part of it: nearly every change
 * is of a status, and refers to nothing new.
 */
const scanShare = 0.02

const maxConcurrent = 2
const firstRetryMs = 10_000
const lastRetryMs = 60 * 60_000

/** More than any node has pods for; what is beyond waits until others are confirmed. */
const maxTargets = 5_000

/**
 * Documents change with the API server's release and with definitions of custom resources, and are
 * larger than most objects.
 */
const documentFactor = 12

/** What is known of one question. */
interface RefreshState extends RefreshResult {
  /**
   * When this was noted: what was noted later than now tells times of a clock that was set back
   * since.
   */
  readonly notedAt: number
  readonly dueAt: number
  readonly askedAt: number
  /** In a row; an answer that was not kept is one. */
  readonly failures: number
}

/**
 * Keeps fresh what a kubelet reads once, or by name: claims, volumes, attachments, its CSINode, and
 * what it has no watch open for. Asks gently: few at a time, each after a time of its own, never
 * while offline, and only for what a pod of the node refers to or the kubelet has asked for itself.
 * What is not known at all is asked for as soon as a pod refers to it.
 */
export class Refresher implements Disposable {
  readonly #parts: RefreshParts
  readonly #states = new Map<string, RefreshState>()
  readonly #references = new PodReferencesByVersion()
  #timer: Disposable | undefined
  #timerAt = Infinity
  #running = false
  #closed = false
  #seen: string | undefined
  /** When the next of those that were not due will be. */
  #soonest = Infinity
  /** How long it took to go through the pods, the last time and the time before. */
  #tookMs: readonly [number, number] = [0, 0]

  constructor(parts: RefreshParts) {
    this.#parts = parts
  }

  /**
   * What asking for an object came to last; `undefined` where it was not asked for since the hub
   * started.
   */
  lastResult(of: ObjectReference): RefreshResult | undefined {
    const found = this.#states.get(keyOf(of))
    return found && found.askedAt > 0 ? found : undefined
  }

  /**
   * Something was written to the store: perhaps a pod has come. Cheap, and may be called as often
   * as that happens.
   */
  storeChanged(): void {
    // Once something else may have had the processor.
    const wait = Math.max(settleMs, Math.min(...this.#tookMs) / scanShare)
    if (this.#closed || this.#running || this.#timerAt <= now() + wait) return
    if (this.#parts.podsVersion() === this.#seen) return
    this.#schedule(jitter(wait / 2, wait))
  }

  /**
   * The cloud is back: what has become due meanwhile is asked for over a while, since every other
   * node does the same.
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
    if (this.#running || !this.#mayAsk()) return
    this.#running = true
    try {
      // A claim tells of a volume, a volume of its attachment and secrets: three steps, and one to
      // see that there is no more.
      for (let step = 0; step < 4; step++) {
        this.#seen = this.#parts.podsVersion()
        const due = await this.#due()
        if (due.length === 0) break
        const turns = due.values()
        await Promise.all(Array.from({ length: maxConcurrent }, () => this.#inTurn(turns)))
      }
    } catch (cause) {
      this.#parts.onFailure(cause)
    } finally {
      this.#running = false
    }
    // A pod may have come while others were asked for.
    this.#schedule(this.#parts.podsVersion() === this.#seen ? this.#untilNext() : settleMs)
  }

  /** What comes online later calls again. */
  #mayAsk(): boolean {
    return !this.#closed && this.#parts.online() && this.#parts.everyMs() > 0
  }

  async #inTurn(due: Iterator<RefreshTarget>): Promise<void> {
    for (let next = due.next(); !next.done && this.#mayAsk(); next = due.next()) {
      const outcome = await this.#parts.request(next.value.request)
      // The link may have gone meanwhile, which says nothing of the object.
      if (!this.#mayAsk() && outcome === 'failed') return
      this.#note(next.value, outcome)
      await pause(jitter(5, 50))
    }
  }

  #note({ key, reference, intervalFactor, known }: RefreshTarget, outcome: RefreshOutcome): void {
    const before = this.#states.get(key)
    if (reference && outcome === 'forbidden' && before?.outcome !== outcome)
      this.#parts.onForbidden(reference)
    const askedAt = now()
    const more = (before?.failures ?? 0) + 1
    if (outcome === 'confirmed' || outcome === 'absent') {
      const dueAt = askedAt + this.#parts.everyMs() * intervalFactor * jitter(0.8, 1.2)
      // A disk that keeps nothing is no reason to ask the cloud all the time.
      const failures = known ? 0 : more
      const asked = { outcome, askedAt, confirmedAt: askedAt }
      this.#states.set(key, { ...asked, notedAt: askedAt, dueAt, failures })
      return
    }
    const failures = more
    // An API server may refuse at first, since it has not heard of the pod itself.
    const retryMs = Math.min(waitAfter(failures, firstRetryMs), lastRetryMs)
    const dueAt = askedAt + retryMs * jitter(0.8, 1.2)
    const confirmedAt = before?.confirmedAt
    this.#states.set(key, {
      outcome,
      askedAt,
      notedAt: askedAt,
      dueAt,
      failures,
      ...(confirmedAt !== undefined && { confirmedAt }),
    })
  }

  /** Those to be asked now. Forgets what no pod refers to any more. */
  async #due(): Promise<RefreshTarget[]> {
    const { cache, nodeName } = this.#parts
    const { targets, tookMs } = await refreshTargets(cache(), {
      nodeName,
      references: this.#references,
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

  /** What is known has been asked for by the kubelet, or by the hub before it was started again. */
  #first({ key, known }: RefreshTarget): RefreshState {
    const wait = known ? jitter(0, this.#parts.everyMs() / 10) : 0
    const notedAt = now()
    const dueAt = notedAt + wait
    const state = { outcome: 'confirmed', notedAt, dueAt, askedAt: 0, failures: 0 } as const
    this.#states.set(key, state)
    return state
  }

  /**
   * When it is to be asked for again: as noted when it was asked for last, but sooner or later by
   * what the store says by now.
   */
  #dueAt(targets: RefreshTarget, state: RefreshState): number {
    const everyMs = this.#parts.everyMs()
    const { dueAt, askedAt, failures } = state
    if (isUnfinished(targets, state)) {
      const firstMs = Math.min(firstRetryMs, everyMs / 10)
      return Math.min(dueAt, askedAt + waitAfter(failures, firstMs))
    }
    // The kubelet may have asked itself since, or have it watched.
    const freshUntil = targets.confirmedAt + targets.intervalFactor * everyMs * 0.8
    return Math.max(dueAt, freshUntil, targets.watchedUntil)
  }

  #untilNext(): number {
    const wait = Math.min(this.#soonest - now(), this.#parts.everyMs() / 10)
    return Math.max(wait, settleMs) * jitter(0.9, 1.1)
  }
}

/** What is to be kept fresh. */
interface RefreshTarget {
  readonly key: string
  readonly request: RefreshRequest
  /** Whether anything is known of it, if only that there is none. */
  readonly known: boolean
  /** Nothing is about to happen to it. */
  readonly settled: boolean
  /**
   * When the cloud last confirmed it, as the store knows, in milliseconds since the epoch; 0:
   * never, or nobody knows.
   */
  readonly confirmedAt: number
  /** Somebody else keeps it fresh until then. */
  readonly watchedUntil: number
  /** How many times as long as other things it stays fresh. */
  readonly intervalFactor: number
  /** Absent for a document. */
  readonly reference?: ObjectReference
}

/**
 * Whether the cloud has told it and there is more to come: it is in motion, or it is not in the
 * store, which did not keep it or cannot read it any more. So is what was not asked for yet and is
 * not there.
 */
const isUnfinished = ({ known, settled }: RefreshTarget, { outcome }: RefreshState): boolean =>
  outcome === 'confirmed' && !(known && settled)

/** Twice as long after each failure in a row. */
const waitAfter = (failures: number, firstMs: number): number =>
  firstMs * 2 ** Math.max(failures - 1, 0)

/** A wait that ends with the process. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => void after(ms, resolve))

const keyOf = ({ gvr, namespace, name }: ObjectReference): string =>
  `${qualifiedResource(gvr)}/${namespace}/${name}`

function urlOf({ gvr, namespace, name, by }: ObjectReference): string {
  if (by === 'get') return resources.pathOf(gvr, namespace, name)
  const selector =
    name === '' ? '' : `?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`
  return `${resources.pathOf(gvr, namespace)}${selector}`
}

/** What lies ahead was said by a clock that was set back since, and tells nothing. */
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
    // Whoever watches it has it fresher than any question would, and a list would only take the
    // watch's history away.
    watchedUntil: by === 'get' ? 0 : confirmedAt + watchedMs,
    intervalFactor: 1,
    reference: needed,
  }
}

/**
 * What `kubectl` and others ask before they ask anything; descriptions of all kinds (OpenAPI) are
 * too large for a thin link.
 */
const isSmall = ({ url }: CachedDocument): boolean => /^\/(?:api|apis|version)(?:[/?]|$)/.test(url)

const documentTarget = ({ url, accept, confirmedAt }: CachedDocument): RefreshTarget => ({
  key: JSON.stringify([url, accept]),
  request: { url, accept },
  known: true,
  settled: true,
  confirmedAt: plausible(confirmedAt),
  watchedUntil: 0,
  intervalFactor: documentFactor,
})

interface Scan {
  readonly nodeName: string
  readonly references: PodReferencesByVersion
  readonly isOver: () => boolean
}

/**
 * All that is to be kept fresh, nothing before a kubelet has asked for its pods; and how long it
 * took to find, others' turns not counted. Stops early where it is over.
 */
async function refreshTargets(
  cache: KubeletCache,
  { nodeName, references, isOver }: Scan,
): Promise<{ readonly targets: ReadonlyMap<string, RefreshTarget>; readonly tookMs: number }> {
  const targets = new Map<string, RefreshTarget>()
  const slices = new TimeSlices()
  references.begin()
  const accept = cache.encodings.map((encoding) => mediaType(encoding)).join(',')
  const add = (needed: ResolvedReference): void => {
    const unasked = needed.need === 'if-asked' && needed.found === undefined
    // What is in a list of all of them is fresh with that list.
    if (unasked || (needed.by === 'listed' && needed.name !== '')) return
    if (targets.size < maxTargets) targets.set(keyOf(needed), targetOf(needed, accept))
  }
  const listed = cache.collection(podsOf(nodeName))
  if (!listed) return { targets, tookMs: slices.tookMs }
  for (const document of cache.documents().filter(isSmall)) {
    const asked = documentTarget(document)
    targets.set(asked.key, asked)
  }
  add(resolveReference(csiNodeOf(nodeName), cache))
  for (const gvr of [resources.csiDrivers, resources.runtimeClasses]) add(listOfAll(gvr, cache))
  try {
    for (const object of listed.objects) {
      const referred = references.of(object, listed)
      if (referred) dependenciesOf(referred, object, cache, nodeName).forEach(add)
      await slices.pause()
      if (isOver()) break
    }
  } catch (cause) {
    // The verdict says so; the next answer of the cloud heals it.
    if (!(cause instanceof StoreFailure)) throw cause
  }
  return { targets, tookMs: slices.tookMs }
}

/** Nothing where an object that the pod leads to cannot be understood: the verdict says so. */
function dependenciesOf(
  referred: PodReferences,
  pod: ApiObject,
  cache: KubeletCache,
  nodeName: string,
): readonly ResolvedReference[] {
  try {
    return podDependencies(referred, pod, cache, nodeName).objects
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return []
  }
}

const csiNodeOf = (nodeName: string): ObjectReference => ({
  gvr: resources.csiNodes,
  namespace: '',
  name: nodeName,
  by: 'get',
  need: 'required',
})

/**
 * A list that the kubelet keeps of all there are, asked for again only where it has asked itself.
 */
const listOfAll = (gvr: ObjectReference['gvr'], cache: KubeletCache): ResolvedReference =>
  resolveReference({ gvr, namespace: '', name: '', by: 'listed', need: 'if-asked' }, cache)
