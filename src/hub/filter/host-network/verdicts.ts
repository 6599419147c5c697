import { elapsed } from '../../../base/clock.ts'
import { StateFile } from '../../../base/state-file.ts'
import { readOwnFile } from '../../../base/own-file.ts'
import type { ShownObject } from '../filter.ts'

/**
 * How the kubelet gets a pod that does not request the host's network: propagated to it, or
 * unchanged. 'refused': unchanged, because the port ledger found no place for it; only this one may
 * be revised.
 */
export type NetworkVerdict = FinalVerdict | 'refused'

export type FinalVerdict = 'propagated' | 'unchanged'

/** A pod's uid and its verdict. */
export type PodVerdict = readonly [uid: string, verdict: NetworkVerdict]

/** The verdicts on pods, which hold until a pod's uid is gone. */
export interface NetworkVerdicts {
  /** Whether verdicts are written to the disk; once they are, they always are. */
  readonly areKept: boolean
  of(uid: string): NetworkVerdict | undefined
  /**
   * Whether a pod without a verdict may have been sent unchanged before verdicts were kept: unless
   * its status shows otherwise, it was.
   */
  mayHaveBeenShown(uid: string): boolean
  /** As in `Inputs`. */
  readonly propagatedLater: readonly string[] | undefined
  /** Whether a pod was refused first, and is propagated since. */
  isPropagatedLater(uid: string): boolean
  /**
   * To be called in mode guarded with pods that may have no verdict, before `settle`: it decides on
   * those that no commit has brought as if they had just come. Returns whether it decides at all:
   * then a pod that still has no verdict is one too many, and stays as the API has it. 'needs
   * list': nothing can be decided before the node's pods are listed.
   */
  judge(pods: readonly ShownObject[]): boolean | 'needs list'
  /**
   * Sets the verdicts of pods that have none; existing verdicts stay. Returns a promise where one
   * of them has to be on the disk and is not yet: it resolves when it is, and rejects where the
   * write fails; the next call tries again.
   */
  settle(decisions: readonly PodVerdict[]): Promise<void> | undefined
}

/**
 * More than a node runs pods. Beyond it the first entries to go are those that were never stored,
 * then the oldest, whose status shows the verdict by then.
 */
export const mostVerdicts = 4096

interface Entry {
  /** 'assumed': no verdict yet, but the pod may have been sent unchanged. */
  readonly verdict: NetworkVerdict | 'assumed'
  /** The write that has to include it. */
  readonly age: number
  /**
   * 'read': from an earlier process, not used since. 'stored': the cache had the pod at the last
   * check.
   */
  state: 'read' | 'sent' | 'stored'
  /** On the monotonic clock. */
  readonly since: number
  /** The pod was refused before. */
  readonly later?: true
}

/** No list takes longer from its first filtered pod to the commit that stores it. */
const storedWithinMs = 10 * 60_000

export interface VerdictStoreOptions {
  readonly shownBefore: () => Iterable<string>
  readonly onKept: () => void
  /** Called when `propagatedLater` has changed, and is on the disk. */
  readonly onRevised: () => void
  readonly onFailure: (cause: unknown) => void
}

/**
 * The verdicts, in memory and, as soon as they can matter, in a file: from `keep` on, or from the
 * first propagated pod. Until then nothing is written, since all pods are sent unchanged.
 *
 * The file is beside the cache, not in it, so that it survives a discarded cache. If the file is
 * lost or unreadable, the status of each pod shows its verdict.
 */
export class VerdictStore implements Omit<NetworkVerdicts, 'judge'>, AsyncDisposable {
  readonly #file: StateFile
  readonly #options: VerdictStoreOptions
  readonly #entries = new Map<string, Entry>()
  #kept: boolean
  #age = 0
  #writtenAge = 0

  /**
   * `shownBefore` returns the uids of the pods in the cache: all that earlier processes without
   * verdicts can have sent to the kubelet. The hub calls `onKept` when it begins to write verdicts,
   * and `onFailure` with the cause where a write fails that no caller awaits.
   */
  constructor(file: string, options: VerdictStoreOptions) {
    this.#file = new StateFile(file, () => this.#content())
    this.#options = options
    const read = verdictsIn(file)
    this.#kept = read !== undefined
    for (const [uid, verdict, later] of read ?? []) {
      const entry: Entry = { verdict, age: 0, state: 'read', since: elapsed() }
      this.#entries.set(uid, later === 'later' ? { ...entry, later: true } : entry)
    }
  }

  get areKept(): boolean {
    return this.#kept
  }

  of(uid: string): NetworkVerdict | undefined {
    const verdict = this.#entries.get(uid)?.verdict
    return verdict === 'assumed' ? undefined : verdict
  }

  mayHaveBeenShown(uid: string): boolean {
    return this.#entries.get(uid)?.verdict === 'assumed'
  }

  /** Only those on the disk: no client may get a revised pod before. */
  get propagatedLater(): readonly string[] | undefined {
    const uids = [...this.#entries].flatMap(([uid, { later, age }]) =>
      later && age <= this.#writtenAge ? [uid] : [],
    )
    return uids.length > 0 ? uids.toSorted() : undefined
  }

  isPropagatedLater(uid: string): boolean {
    return this.#entries.get(uid)?.later === true
  }

  /** Whether the last write failed, so that a revised verdict may wait for the next. */
  get isBehind(): boolean {
    return this.#kept && this.#age > this.#writtenAge
  }

  /**
   * Replaces 'refused' by a final verdict, or a verdict that has reached no client by 'refused'.
   * Clients get the pod propagated once that is on the disk: see `onRevised`.
   */
  revise(uid: string, verdict: NetworkVerdict): void {
    const { state = 'sent', later } = this.#entries.get(uid) ?? {}
    this.#add(uid, verdict, state, verdict === 'propagated' ? { later: true } : {})
    if (later && verdict !== 'propagated') this.#options.onRevised()
    this.retry()
  }

  /** Writes the verdicts that are not on the disk yet. */
  retry(): void {
    this.#begin()
    this.#write().catch(this.#options.onFailure)
  }

  /**
   * Writes verdicts from now on. Must be called before any pod is sent on which inputs besides the
   * pod decide.
   */
  keep(): void {
    if (this.#begin()) this.#write().catch(this.#options.onFailure)
  }

  settle(decisions: readonly PodVerdict[]): Promise<void> | undefined {
    let age = 0
    for (const [uid, verdict] of decisions) {
      const known = this.#entries.get(uid)
      const entry =
        known && known.verdict !== 'assumed'
          ? known
          : this.#add(uid, verdict, known?.state ?? 'sent')
      if (entry.state === 'read') entry.state = 'sent'
      if (entry.verdict === 'propagated') this.#begin()
      age = Math.max(age, entry.age)
    }
    return this.#kept && age > this.#writtenAge ? this.#write() : undefined
  }

  /**
   * Removes the verdicts of pods that are gone: those that the cache had and no longer has.
   * `present`: the uids of all cached pods; `confirmed`: whether the cloud has listed pods since
   * this process began.
   */
  retain(present: ReadonlySet<string>, confirmed: boolean): void {
    const { size } = this.#entries
    let revised = false
    for (const [uid, entry] of this.#entries) {
      if (present.has(uid)) entry.state = 'stored'
      // A pod on its way to the kubelet that is not cached yet is not gone.
      else if (entry.state === 'sent' && elapsed() < entry.since + storedWithinMs) continue
      else if (entry.state !== 'read' || confirmed) {
        this.#entries.delete(uid)
        revised ||= entry.later === true
      }
    }
    if (revised) this.#options.onRevised()
    if (this.#kept && this.#entries.size < size) this.#write().catch(this.#options.onFailure)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }

  /** False where verdicts were already kept. */
  #begin(): boolean {
    if (this.#kept) return false
    this.#kept = true
    for (const uid of this.#options.shownBefore()) {
      if (!this.#entries.has(uid)) this.#add(uid, 'assumed', 'stored')
    }
    // Not in the middle of a pass over pods.
    queueMicrotask(this.#options.onKept)
    return true
  }

  #add(
    uid: string,
    verdict: Entry['verdict'],
    state: Entry['state'],
    later: Pick<Entry, 'later'> = {},
  ): Entry {
    if (this.#entries.size >= mostVerdicts && !this.#entries.has(uid)) this.#evictOne()
    const entry: Entry = { verdict, age: ++this.#age, state, since: elapsed(), ...later }
    this.#entries.set(uid, entry)
    return entry
  }

  #evictOne(): void {
    // Without a copy: a list of more pods than there may be entries evicts one for each pod.
    const unstored = this.#entries.entries().find(([, { state }]) => state !== 'stored')
    const [first] = unstored ?? this.#entries.entries().next().value ?? []
    if (first !== undefined) this.#entries.delete(first)
  }

  async #write(): Promise<void> {
    const age = this.#age
    await this.#file.write()
    const before = this.#writtenAge
    this.#writtenAge = Math.max(before, age)
    const revised = this.#entries.values().some((each) => each.later && each.age > before)
    if (revised) this.#options.onRevised()
  }

  #content(): string {
    const entries = [...this.#entries].map(([uid, { verdict, later }]) =>
      later ? [uid, verdict, 'later'] : [uid, verdict],
    )
    return `${JSON.stringify(entries)}\n`
  }
}

type StoredVerdict = readonly [uid: string, verdict: Entry['verdict'], later?: 'later']

/** `undefined` where the file is absent or invalid. */
function verdictsIn(file: string): readonly StoredVerdict[] | undefined {
  try {
    const entries: unknown = JSON.parse(String(readOwnFile(file)))
    return Array.isArray(entries) ? entries.filter(isStoredVerdict) : undefined
  } catch {
    return undefined
  }
}

const isStoredVerdict = (entry: unknown): entry is StoredVerdict =>
  Array.isArray(entry) && typeof entry[0] === 'string' && storedVerdicts.has(entry[1])

const storedVerdicts: ReadonlySet<unknown> = new Set([
  'propagated',
  'unchanged',
  'refused',
  'assumed',
] satisfies Entry['verdict'][])
