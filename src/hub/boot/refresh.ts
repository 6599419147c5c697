import { after, jitter, now } from '../../base/clock.ts'
import { Slices } from '../../base/slices.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import * as resources from '../../api/kube/resources.ts'
import { StoreFailure } from '../store/store.ts'
import { podsOf, type AskedDocument, type Knowledge } from './knowledge.ts'
import { isSettled, look, needsOf, type NeededObject } from './needs.ts'
import { PodReferencesByVersion } from './pod-references.ts'
import type { ObjectReference, PodReferences } from './references.ts'
import type { Asked } from './verdict.ts'

/** A question to the cloud, as the kubelet puts it. */
export interface Question {
  /** Path and query. */
  readonly url: string
  readonly accept: string
}

/**
 * What came of a question. `confirmed`: what the cloud said is in the store, an empty list
 * included.
 */
export type Outcome = Asked['outcome']

export interface RefreshParts {
  readonly nodeName: string
  readonly knowledge: () => Knowledge
  /** What of the pods' list changes when any of them does; read often. */
  readonly podsVersion: () => string | undefined
  /** Asks as the node, and keeps the answer as if the kubelet had asked. Does not reject. */
  readonly ask: (question: Question) => Promise<Outcome>
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
const lookingPart = 0.02

const atOnce = 2
const firstRetryMs = 10_000
const lastRetryMs = 60 * 60_000

/** More than any node has pods for; what is beyond waits until others are confirmed. */
const mostQuestions = 5_000

/**
 * Documents change with the API server's release and with definitions of custom resources, and are
 * larger than most objects.
 */
const documentsEvery = 12

/** What is known of one question. */
interface Standing extends Asked {
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
  readonly #standings = new Map<string, Standing>()
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
  asked(of: ObjectReference): Asked | undefined {
    const found = this.#standings.get(keyOf(of))
    return found && found.askedAt > 0 ? found : undefined
  }

  /**
   * Something was written to the store: perhaps a pod has come. Cheap, and may be called as often
   * as that happens.
   */
  stir(): void {
    // Once something else may have had the processor.
    const wait = Math.max(settleMs, Math.min(...this.#tookMs) / lookingPart)
    if (this.#closed || this.#running || this.#timerAt <= now() + wait) return
    if (this.#parts.podsVersion() === this.#seen) return
    this.#in(jitter(wait / 2, wait))
  }

  /**
   * The cloud is back: what has become due meanwhile is asked for over a while, since every other
   * node does the same.
   */
  cameOnline(): void {
    const spread = this.#parts.everyMs() / 10
    const present = now()
    for (const [key, standing] of this.#standings) {
      if (standing.dueAt >= present) continue
      const dueAt = present + jitter(0, spread)
      this.#standings.set(key, { ...standing, notedAt: present, dueAt })
    }
    this.#in(jitter(0, settleMs))
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#timer?.[Symbol.dispose]()
  }

  #in(ms: number): void {
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
        await Promise.all(Array.from({ length: atOnce }, () => this.#inTurn(turns)))
      }
    } catch (cause) {
      this.#parts.onFailure(cause)
    } finally {
      this.#running = false
    }
    // A pod may have come while others were asked for.
    this.#in(this.#parts.podsVersion() === this.#seen ? this.#untilNext() : settleMs)
  }

  /** What comes online later calls again. */
  #mayAsk(): boolean {
    return !this.#closed && this.#parts.online() && this.#parts.everyMs() > 0
  }

  async #inTurn(due: Iterator<Wanted>): Promise<void> {
    for (let next = due.next(); !next.done && this.#mayAsk(); next = due.next()) {
      const outcome = await this.#parts.ask(next.value.question)
      // The link may have gone meanwhile, which says nothing of the object.
      if (!this.#mayAsk() && outcome === 'failed') return
      this.#note(next.value, outcome)
      await pause(jitter(5, 50))
    }
  }

  #note({ key, of, every, known }: Wanted, outcome: Outcome): void {
    const before = this.#standings.get(key)
    if (of && outcome === 'forbidden' && before?.outcome !== outcome) this.#parts.onForbidden(of)
    const askedAt = now()
    const more = (before?.failures ?? 0) + 1
    if (outcome === 'confirmed' || outcome === 'absent') {
      const dueAt = askedAt + this.#parts.everyMs() * every * jitter(0.8, 1.2)
      // A disk that keeps nothing is no reason to ask the cloud all the time.
      const failures = known ? 0 : more
      const asked = { outcome, askedAt, confirmedAt: askedAt }
      this.#standings.set(key, { ...asked, notedAt: askedAt, dueAt, failures })
      return
    }
    const failures = more
    // An API server may refuse at first, since it has not heard of the pod itself.
    const retryMs = Math.min(waitAfter(failures, firstRetryMs), lastRetryMs)
    const dueAt = askedAt + retryMs * jitter(0.8, 1.2)
    const confirmedAt = before?.confirmedAt
    this.#standings.set(key, {
      outcome,
      askedAt,
      notedAt: askedAt,
      dueAt,
      failures,
      ...(confirmedAt !== undefined && { confirmedAt }),
    })
  }

  /** Those to be asked now. Forgets what no pod refers to any more. */
  async #due(): Promise<Wanted[]> {
    const { knowledge, nodeName } = this.#parts
    const { wanted, tookMs } = await wantedOf(knowledge(), {
      nodeName,
      references: this.#references,
      isOver: () => this.#closed,
    })
    this.#tookMs = [tookMs, this.#tookMs[0]]
    for (const key of this.#standings.keys()) {
      if (!wanted.has(key)) this.#standings.delete(key)
    }
    const present = now()
    this.#soonest = Infinity
    return [...wanted.values()].filter((each) => {
      const noted = this.#standings.get(each.key)
      const standing = noted && noted.notedAt <= present ? noted : this.#first(each)
      const dueAt = this.#dueAt(each, standing)
      if (dueAt <= present) return true
      this.#soonest = Math.min(this.#soonest, dueAt)
      return false
    })
  }

  /** What is known has been asked for by the kubelet, or by the hub before it was started again. */
  #first({ key, known }: Wanted): Standing {
    const wait = known ? jitter(0, this.#parts.everyMs() / 10) : 0
    const notedAt = now()
    const dueAt = notedAt + wait
    const standing = { outcome: 'confirmed', notedAt, dueAt, askedAt: 0, failures: 0 } as const
    this.#standings.set(key, standing)
    return standing
  }

  /**
   * When it is to be asked for again: as noted when it was asked for last, but sooner or later by
   * what the store says by now.
   */
  #dueAt(wanted: Wanted, standing: Standing): number {
    const everyMs = this.#parts.everyMs()
    const { dueAt, askedAt, failures } = standing
    if (isUnfinished(wanted, standing)) {
      const firstMs = Math.min(firstRetryMs, everyMs / 10)
      return Math.min(dueAt, askedAt + waitAfter(failures, firstMs))
    }
    // The kubelet may have asked itself since, or have it watched.
    const freshUntil = wanted.confirmedAt + wanted.every * everyMs * 0.8
    return Math.max(dueAt, freshUntil, wanted.leftUntil)
  }

  #untilNext(): number {
    const wait = Math.min(this.#soonest - now(), this.#parts.everyMs() / 10)
    return Math.max(wait, settleMs) * jitter(0.9, 1.1)
  }
}

/** What is to be kept fresh. */
interface Wanted {
  readonly key: string
  readonly question: Question
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
  readonly leftUntil: number
  /** How many times as long as other things it stays fresh. */
  readonly every: number
  /** Absent for a document. */
  readonly of?: ObjectReference
}

/**
 * Whether the cloud has told it and there is more to come: it is in motion, or it is not in the
 * store, which did not keep it or cannot read it any more. So is what was not asked for yet and is
 * not there.
 */
const isUnfinished = ({ known, settled }: Wanted, { outcome }: Standing): boolean =>
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
const believed = (confirmedAt: number): number => (confirmedAt > now() ? 0 : confirmedAt)

function asWanted(needed: NeededObject, accept: string): Wanted {
  const { by, found } = needed
  const confirmedAt = believed(needed.confirmedAt ?? 0)
  return {
    key: keyOf(needed),
    question: { url: urlOf(needed), accept },
    known: found !== undefined,
    settled: isSettled(needed),
    confirmedAt,
    // Whoever watches it has it fresher than any question would, and a list would only take the
    // watch's history away.
    leftUntil: by === 'get' ? 0 : confirmedAt + watchedMs,
    every: 1,
    of: needed,
  }
}

/**
 * What `kubectl` and others ask before they ask anything; descriptions of all kinds (OpenAPI) are
 * too large for a thin link.
 */
const isSmall = ({ url }: AskedDocument): boolean => /^\/(?:api|apis|version)(?:[/?]|$)/.test(url)

const asWantedDocument = ({ url, accept, confirmedAt }: AskedDocument): Wanted => ({
  key: JSON.stringify([url, accept]),
  question: { url, accept },
  known: true,
  settled: true,
  confirmedAt: believed(confirmedAt),
  leftUntil: 0,
  every: documentsEvery,
})

interface Looking {
  readonly nodeName: string
  readonly references: PodReferencesByVersion
  readonly isOver: () => boolean
}

/**
 * All that is to be kept fresh, nothing before a kubelet has asked for its pods; and how long it
 * took to find, others' turns not counted. Stops early where it is over.
 */
async function wantedOf(
  knowledge: Knowledge,
  { nodeName, references, isOver }: Looking,
): Promise<{ readonly wanted: ReadonlyMap<string, Wanted>; readonly tookMs: number }> {
  const wanted = new Map<string, Wanted>()
  const slices = new Slices()
  references.begin()
  const accept = knowledge.encodings.map((encoding) => mediaType(encoding)).join(',')
  const add = (needed: NeededObject): void => {
    const unasked = needed.need === 'if-asked' && needed.found === undefined
    // What is in a list of all of them is fresh with that list.
    if (unasked || (needed.by === 'listed' && needed.name !== '')) return
    if (wanted.size < mostQuestions) wanted.set(keyOf(needed), asWanted(needed, accept))
  }
  const listed = knowledge.collection(podsOf(nodeName))
  if (!listed) return { wanted, tookMs: slices.tookMs }
  for (const document of knowledge.documents().filter(isSmall)) {
    const asked = asWantedDocument(document)
    wanted.set(asked.key, asked)
  }
  add(look(csiNodeOf(nodeName), knowledge))
  for (const gvr of [resources.csiDrivers, resources.runtimeClasses]) add(whole(gvr, knowledge))
  try {
    for (const object of listed.objects) {
      const referred = references.of(object, listed)
      if (referred) neededBy(referred, object, knowledge, nodeName).forEach(add)
      await slices.pause()
      if (isOver()) break
    }
  } catch (cause) {
    // The verdict says so; the next answer of the cloud heals it.
    if (!(cause instanceof StoreFailure)) throw cause
  }
  return { wanted, tookMs: slices.tookMs }
}

/** Nothing where an object that the pod leads to cannot be understood: the verdict says so. */
function neededBy(
  referred: PodReferences,
  pod: ApiObject,
  knowledge: Knowledge,
  nodeName: string,
): readonly NeededObject[] {
  try {
    return needsOf(referred, pod, knowledge, nodeName).objects
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
const whole = (gvr: ObjectReference['gvr'], knowledge: Knowledge): NeededObject =>
  look({ gvr, namespace: '', name: '', by: 'listed', need: 'if-asked' }, knowledge)
