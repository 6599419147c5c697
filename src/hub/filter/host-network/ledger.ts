import { after } from '../../../base/clock.ts'
import type { Cursor } from '../../../api/codec/cursor.ts'
import { portName } from '../../../api/kube/host-network-pod.ts'
import type { ReservedPort } from '../../../api/kube/node-ports.ts'
import { isNewer } from '../../../api/kube/resource-version.ts'
import type { ShownObject } from '../filter.ts'
import type { Inputs } from '../inputs.ts'
import {
  judge,
  keptOnPodNetwork,
  keptReason,
  propagated,
  runsOnHost,
  type Judgement,
  type PortUsers,
} from './judgement.ts'
import { podFacts, type PodFacts } from './pod-facts.ts'
import type { NetworkVerdict, NetworkVerdicts, PodVerdict, VerdictStore } from './verdicts.ts'

/** A pod as a commit brings it. */
export interface RecordedPod extends ShownObject {
  readonly resourceVersion: string
}

/** The pods of a committed list, and its version. */
export interface StoredPods {
  readonly pods: Iterable<RecordedPod>
  readonly version: string
}

export interface LedgerOptions {
  readonly nodeName: string
  readonly verdicts: VerdictStore
  /** The ports of the hub. */
  readonly reserved: readonly ReservedPort[]
  readonly listeners: () => ReadonlySet<string> | undefined
  /**
   * All pods of the node as last committed; read when the ledger is opened. `undefined`: no list is
   * stored.
   */
  readonly stored: () => StoredPods | undefined
  /** Called with each new verdict of mode guarded, and with a refusal for another reason. */
  readonly onJudged: (pod: PodFacts, judgement: Judgement) => void
  readonly onFailure: (cause: unknown) => void
}

/**
 * How often the ledger decides again on pods while a program of the host, which no commit shows,
 * has their port.
 */
const listenersMs = 5_000

/**
 * More than a node runs, and fewer than the verdicts that are kept: the verdict on a pod that is
 * known here is not evicted by one on another. A pod beyond them stays as the API has it.
 */
export const mostPods = 2048

/**
 * The ports of the host and the pods that hold them. In mode guarded it decides, in the order in
 * which the store accepts writes of the node's pods, which of them are put on the host's network:
 * an answer is sent after its commit, so that the filter finds every verdict. A pod that it
 * propagates stays so; on one that it refused, and that never ran, it decides again, oldest first,
 * whenever a port may be free.
 */
export class PortLedger implements NetworkVerdicts, Disposable {
  readonly #options: LedgerOptions
  readonly #pods = new Map<string, PodFacts>()
  readonly #judgements = new Map<string, Judgement>()
  /**
   * Pods with a verdict that came when the stored list was known, and lacked them: a crash has
   * prevented the commit of that verdict, so that no kubelet got the pod.
   */
  readonly #unrecorded = new Set<string>()
  /** The version of the last accepted write. */
  #accepted = ''
  #inputs: Pick<Inputs, 'propagation' | 'pool'> = { propagation: 'off', pool: undefined }
  #recheck: Disposable | undefined
  /** Whether all pods of the node are known: without a list of them, any port may have a holder. */
  #isComplete = false
  #closed = false

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  get areKept(): boolean {
    return this.#options.verdicts.areKept
  }

  of(uid: string): NetworkVerdict | undefined {
    return this.#options.verdicts.of(uid)
  }

  mayHaveBeenShown(uid: string): boolean {
    return this.#options.verdicts.mayHaveBeenShown(uid)
  }

  get propagatedLater(): readonly string[] | undefined {
    return this.#options.verdicts.propagatedLater
  }

  isPropagatedLater(uid: string): boolean {
    return this.#options.verdicts.isPropagatedLater(uid)
  }

  settle(decisions: readonly PodVerdict[]): Promise<void> | undefined {
    return this.#options.verdicts.settle(decisions)
  }

  /** Whether the node's pods have to be listed before it can decide. */
  get needsList(): boolean {
    return this.#isOpen && !this.#isComplete
  }

  judge(pods: readonly ShownObject[]): boolean | 'needs list' {
    if (this.needsList) return 'needs list'
    const decides = this.#isOpen && this.#inputs.pool?.hostNetwork === true
    const unknown = pods.filter(({ uid }) => uid !== '' && this.of(uid) === undefined)
    if (unknown.length === 0) return decides
    for (const { cursor, uid } of unknown) {
      const version = cursor.value(['metadata', 'resourceVersion'])
      this.#note({ cursor, uid, resourceVersion: String(version ?? '') })
    }
    this.#judgeAll()
    return decides
  }

  /** The reason of the last verdict on a pod; `undefined`: none of this process. */
  judgementOf(uid: string): Judgement | undefined {
    return this.#judgements.get(uid)
  }

  /** Follows the mode and the pool. Only in mode guarded it reads pods and decides. */
  follow({ propagation, pool }: Pick<Inputs, 'propagation' | 'pool'>): void {
    const before = this.#inputs
    this.#inputs = { propagation, pool }
    if (propagation !== 'guarded') {
      this.#isComplete = false
      this.#pods.clear()
      this.#judgements.clear()
      this.#unrecorded.clear()
      this.#accepted = ''
      this.#recheck?.[Symbol.dispose]()
      this.#recheck = undefined
      return
    }
    if (before.propagation !== 'guarded') this.reconcile()
    else if (before.pool !== pool) this.#judgeAll()
  }

  /** Events of the node's pods were accepted. Those of a slower watch are known already. */
  changed(events: readonly { readonly pod: RecordedPod; readonly isGone: boolean }[]): void {
    if (!this.#isOpen) return
    for (const { pod, isGone } of events) {
      if (isNewer(this.#accepted, pod.resourceVersion)) continue
      this.#accepted = pod.resourceVersion
      if (isGone) this.#remove(pod.uid)
      else this.#note(pod)
    }
    this.#judgeAll()
  }

  /** A whole list of the node's pods was accepted: pods that it lacks are gone. */
  listed(pods: readonly RecordedPod[], version: string): void {
    if (!this.#isOpen) return
    this.#accepted = version
    this.#replace(pods, (own) => isNewer(own, version))
    this.#judgeAll()
  }

  /**
   * Compares the ledger with what is committed. Nothing happens while an accepted write is not: the
   * reconciliation after its commit does it.
   */
  reconcile(): void {
    if (!this.#isOpen) return
    try {
      const stored = this.#options.stored()
      // A collection that missed a write: its earlier pods are known.
      if (stored === undefined) return
      const pods = [...stored.pods]
      if (!isNewer(this.#accepted, stored.version)) this.#replace(pods, () => false)
    } catch (cause) {
      this.#options.onFailure(cause)
    }
    this.#judgeAll()
  }

  [Symbol.dispose](): void {
    this.#closed = true
    this.#recheck?.[Symbol.dispose]()
  }

  get #isOpen(): boolean {
    return !this.#closed && this.#inputs.propagation === 'guarded'
  }

  /** Pods that are not among `pods` are gone, but for those of a later version than these. */
  #replace(pods: readonly RecordedPod[], isLater: (version: string) => boolean): void {
    const present = new Set(pods.map(({ uid }) => uid))
    for (const [uid, { resourceVersion: own }] of this.#pods)
      if (!present.has(uid) && !isLater(own)) this.#remove(uid)
    for (const pod of pods) this.#note(pod)
    this.#isComplete = true
  }

  /** An older state than the known one changes nothing. */
  #note({ cursor, uid, resourceVersion: version }: RecordedPod): void {
    const known = this.#pods.get(uid)
    if (known && (known.resourceVersion === version || isNewer(known.resourceVersion, version)))
      return
    const facts = this.#read(cursor, uid, version)
    if (!facts) return
    if (!known && !this.#hasRoom()) return
    this.#pods.set(uid, facts)
    if (!known && this.#isComplete && this.of(uid) === 'propagated') this.#unrecorded.add(uid)
  }

  /** Pods that have ended hold nothing, and make room. */
  #hasRoom(): boolean {
    if (this.#pods.size < mostPods) return true
    for (const [uid, { hasEnded }] of this.#pods) if (hasEnded) this.#remove(uid)
    return this.#pods.size < mostPods
  }

  #read(cursor: Cursor, uid: string, version: string): PodFacts | undefined {
    const { nodeName, onFailure } = this.#options
    try {
      return podFacts(cursor, { uid, resourceVersion: version }, nodeName)
    } catch (cause) {
      onFailure(cause)
      // A pod that cannot be read stays as it is.
      this.#settle([[uid, 'unchanged']])
      return undefined
    }
  }

  #remove(uid: string): void {
    this.#pods.delete(uid)
    this.#judgements.delete(uid)
    this.#unrecorded.delete(uid)
  }

  #settle(decisions: readonly PodVerdict[]): void {
    // Answers that wait for the write call `settle` again.
    this.settle(decisions)?.catch(() => undefined)
  }

  #judgeAll(): void {
    this.#recheck?.[Symbol.dispose]()
    this.#recheck = undefined
    if (!this.#isOpen || !this.#isComplete) return
    this.#withdrawUnrecorded()
    for (const pod of this.#pods.values()) {
      this.#settleByEvidence(pod)
      this.#showSettled(pod)
    }
    if (this.#inputs.pool?.hostNetwork === true) this.#judgeWaiting()
    const mustRetry = this.#options.verdicts.isBehind
    if (mustRetry || this.#awaitsListener())
      this.#recheck = after(listenersMs, () => this.#judgeAgain())
  }

  #awaitsListener(): boolean {
    for (const [uid, { reason }] of this.#judgements) {
      const pod = this.#pods.get(uid)
      if (reason === 'PortInUse' && pod && this.#waits(pod)) return true
    }
    return false
  }

  #judgeAgain(): void {
    if (this.#options.verdicts.isBehind) this.#options.verdicts.retry()
    this.#judgeAll()
  }

  /** A verdict that has reached no kubelet gives way to a pod that has its port by now. */
  #withdrawUnrecorded(): void {
    for (const uid of this.#unrecorded) {
      const pod = this.#pods.get(uid)
      if (!pod || pod.hasRun) continue
      const holders = this.#holders(uid)
      if (pod.ports.some((port) => holders.has(portName(port))))
        this.#options.verdicts.revise(uid, 'refused')
    }
    this.#unrecorded.clear()
  }

  /** Verdicts that need no port: these come before all others. */
  #settleByEvidence(pod: PodFacts): void {
    const { uid, evidence, hasRun } = pod
    if (!pod.mayBePropagated) return
    const verdict = this.of(uid)
    if (verdict === 'refused' && hasRun) this.#options.verdicts.revise(uid, 'unchanged')
    if (verdict !== undefined) return
    if (evidence === 'propagated') {
      this.#settle([[uid, 'propagated']])
      this.#show(pod, runsOnHost(pod))
    } else if (this.#mayRunUnchanged(pod)) {
      this.#settle([[uid, 'unchanged']])
    }
    const { pool } = this.#inputs
    const isOther = pool === null || pool?.hostNetwork === false
    if (isOther || pod.hasEnded) this.#settle([[uid, 'unchanged']])
  }

  /** A pod that an earlier hub reported as refused has to run before its verdict is final. */
  #mayRunUnchanged({ uid, evidence, hasRun, reported }: PodFacts): boolean {
    if (hasRun) return evidence === 'unchanged' || this.mayHaveBeenShown(uid)
    return this.mayHaveBeenShown(uid) && reported.status !== 'False'
  }

  /**
   * Shows a final verdict that the pod's condition does not show: one of an earlier process, whose
   * report may have failed, one of another mode, or that of a refused pod which has started
   * meanwhile.
   */
  #showSettled(pod: PodFacts): void {
    const { uid, mayBePropagated, evidence, hasRun, reported } = pod
    if (!mayBePropagated) return
    const verdict = this.of(uid)
    const shown = this.#judgements.get(uid)
    if (verdict === 'propagated' && !shown && reported.status !== 'True') {
      const { reserved, listeners } = this.#options
      const isThere = evidence === 'propagated'
      this.#show(pod, isThere ? runsOnHost(pod) : propagated(pod, { reserved, listeners }))
    }
    const wasRefused = shown
      ? shown.verdict === 'refused'
      : reported.status === 'False' && reported.reason !== keptReason
    if (verdict === 'unchanged' && hasRun && wasRefused) this.#show(pod, keptOnPodNetwork)
  }

  /** Decides on the pods without a final verdict, oldest first. */
  #judgeWaiting(): void {
    const { verdicts, reserved, listeners } = this.#options
    const waiting = [...this.#pods.values()].filter((pod) => this.#waits(pod)).toSorted(byAge)
    if (waiting.length === 0) return
    const holders = this.#holders()
    let seen: { readonly ports: ReadonlySet<string> | undefined } | undefined
    const users: PortUsers = {
      holderOf: (port) => holders.get(port),
      listeners: () => (seen ??= { ports: listeners() }).ports,
      reserved,
    }
    for (const pod of waiting) {
      const judgement = judge(pod, users)
      const { uid } = pod
      // The kubelet has it already: by an earlier verdict, or by one that is lost.
      const isKnown =
        this.of(uid) === 'refused' || pod.evidence === 'unchanged' || this.mayHaveBeenShown(uid)
      if (judgement.verdict === 'refused') this.#settle([[uid, 'refused']])
      else if (isKnown) verdicts.revise(uid, 'propagated')
      else this.#settle([[uid, 'propagated']])
      if (judgement.verdict === 'propagated')
        for (const port of pod.ports) holders.set(portName(port), pod)
      this.#show(pod, judgement)
    }
  }

  #waits({ uid, mayBePropagated, hasEnded, isDeleting, hasRun }: PodFacts): boolean {
    if (!mayBePropagated || hasEnded) return false
    const verdict = this.of(uid)
    return verdict === undefined || (verdict === 'refused' && !isDeleting && !hasRun)
  }

  /** The pods that hold ports of the host, by `portName`; those of pod `except` are left out. */
  #holders(except?: string): Map<string, PodFacts> {
    const holders = new Map<string, PodFacts>()
    for (const pod of this.#pods.values()) {
      if (pod.hasEnded || pod.uid === except) continue
      const verdict = this.of(pod.uid)
      const isOnHost = pod.requestsHost || (pod.mayBePropagated && verdict === 'propagated')
      const isWaiting = pod.mayBePropagated && (verdict === undefined || verdict === 'refused')
      const ports = isOnHost ? pod.ports : isWaiting ? [] : pod.hostPorts
      for (const port of ports) holders.set(portName(port), pod)
    }
    return holders
  }

  /** A judgement that says the same again is not another one: its report may be under way. */
  #show(pod: PodFacts, judgement: Judgement): void {
    const before = this.#judgements.get(pod.uid)
    const isSame = before?.reason === judgement.reason && before.message === judgement.message
    if (isSame) return
    this.#judgements.set(pod.uid, judgement)
    this.#options.onJudged(pod, judgement)
  }
}

const byAge = (a: PodFacts, b: PodFacts): number =>
  compare(a.createdAt, b.createdAt) || compare(a.uid, b.uid)

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)
