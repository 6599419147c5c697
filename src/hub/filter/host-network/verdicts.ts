import { elapsed } from '../../../base/clock.ts'
import { StateFile } from '../../../base/state-file.ts'
import { readOwnFile } from '../../../base/own-file.ts'

/**
 * How the kubelet was first shown a pod that does not ask for the host's network: on it all the
 * same, or as it is.
 */
export type NetworkVerdict = 'propagated' | 'unchanged'

/** A pod by its uid, and how it is shown. */
export type Judged = readonly [uid: string, verdict: NetworkVerdict]

/** How pods were first shown, which they stay until their uid is gone. */
export interface NetworkVerdicts {
  /** Whether verdicts are written; once they are, they stay so. */
  readonly areKept: boolean
  of(uid: string): NetworkVerdict | undefined
  /**
   * Whether a pod without a verdict may have been shown as it is before verdicts were kept: unless
   * its status says otherwise, it was.
   */
  mayHaveBeenShown(uid: string): boolean
  /**
   * Gives those a verdict that have none; whose have one keep it. Returns a promise where one of
   * them has to be on the disk and is not yet: it resolves when it is, and rejects where it could
   * not be written; the next call tries again.
   */
  settle(judged: readonly Judged[]): Promise<void> | undefined
}

/**
 * More than a node runs pods. What goes first beyond it is what was never stored, then what is
 * oldest: by then its status tells.
 */
export const mostVerdicts = 4096

interface Entry {
  /** 'assumed': none yet, but it may have been shown as it is. */
  readonly verdict: NetworkVerdict | 'assumed'
  /** Of which write it has to be part. */
  readonly age: number
  /**
   * 'read': given by a process before this one, and not asked for since; 'stored': the cache had
   * the pod when last looked.
   */
  state: 'read' | 'shown' | 'stored'
  /** On the clock of `elapsed`. */
  readonly since: number
}

/** No list is longer on its way from the first pod that is judged to the commit that stores it. */
const storedWithinMs = 10 * 60_000

export interface VerdictSurroundings {
  readonly shownBefore: () => Iterable<string>
  readonly onKept: () => void
  readonly onFailure: (cause: unknown) => void
}

/**
 * The verdicts, in memory and, as soon as they can matter, in a file: from `keep` on, or from the
 * first pod that is shown propagated. Before that nothing is written, since all pods are shown as
 * they are.
 *
 * The file lies beside the cache, not in it, so that a cache that is thrown away leaves it. One
 * that is lost, or cannot be read, is as good as none: then pods' own statuses tell.
 */
export class KeptVerdicts implements NetworkVerdicts, AsyncDisposable {
  readonly #file: StateFile
  readonly #shownBefore: () => Iterable<string>
  readonly #onFailure: (cause: unknown) => void
  readonly #onKept: () => void
  readonly #entries = new Map<string, Entry>()
  #kept: boolean
  #age = 0
  #writtenAge = 0

  /**
   * `shownBefore` gives the uids of the pods that the cache holds: all that the kubelet can have
   * been shown by processes that kept no verdicts. `onKept` is called when verdicts begin to be
   * written, `onFailure` with the cause where nobody waits for a write that failed.
   */
  constructor(file: string, { shownBefore, onKept, onFailure }: VerdictSurroundings) {
    this.#file = new StateFile(file, () => this.#content())
    this.#shownBefore = shownBefore
    this.#onFailure = onFailure
    this.#onKept = onKept
    const read = verdictsIn(file)
    this.#kept = read !== undefined
    for (const [uid, verdict] of read ?? []) {
      this.#entries.set(uid, { verdict, age: 0, state: 'read', since: elapsed() })
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

  /**
   * From now on verdicts are written. To be called before anything is shown of which they depend on
   * more than the pod.
   */
  keep(): void {
    if (this.#begin()) this.#write().catch(this.#onFailure)
  }

  settle(judged: readonly Judged[]): Promise<void> | undefined {
    let age = 0
    for (const [uid, verdict] of judged) {
      const known = this.#entries.get(uid)
      const entry =
        known && known.verdict !== 'assumed'
          ? known
          : this.#add(uid, verdict, known?.state ?? 'shown')
      if (entry.state === 'read') entry.state = 'shown'
      if (entry.verdict === 'propagated') this.#begin()
      age = Math.max(age, entry.age)
    }
    return this.#kept && age > this.#writtenAge ? this.#write() : undefined
  }

  /**
   * Forgets the pods that are gone: those that the cache had and has no more. `present`: the uids
   * of all pods in it; `confirmed`: whether the cloud has told anything of them since this process
   * began.
   */
  retain(present: ReadonlySet<string>, confirmed: boolean): void {
    const { size } = this.#entries
    for (const [uid, entry] of this.#entries) {
      if (present.has(uid)) entry.state = 'stored'
      // What is on its way to the kubelet, and not in the cache yet, is not gone.
      else if (entry.state === 'shown' && elapsed() < entry.since + storedWithinMs) continue
      else if (entry.state !== 'read' || confirmed) this.#entries.delete(uid)
    }
    if (this.#kept && this.#entries.size < size) this.#write().catch(this.#onFailure)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }

  /** Whether that is new. */
  #begin(): boolean {
    if (this.#kept) return false
    this.#kept = true
    for (const uid of this.#shownBefore()) {
      if (!this.#entries.has(uid)) this.#add(uid, 'assumed', 'stored')
    }
    // Not while somebody is in the middle of judging pods.
    queueMicrotask(this.#onKept)
    return true
  }

  #add(uid: string, verdict: Entry['verdict'], state: Entry['state']): Entry {
    if (this.#entries.size >= mostVerdicts && !this.#entries.has(uid)) this.#makeRoom()
    const entry: Entry = { verdict, age: ++this.#age, state, since: elapsed() }
    this.#entries.set(uid, entry)
    return entry
  }

  #makeRoom(): void {
    const all = [...this.#entries]
    const [first] = all.find(([, { state }]) => state !== 'stored') ?? all[0] ?? []
    if (first !== undefined) this.#entries.delete(first)
  }

  async #write(): Promise<void> {
    const age = this.#age
    await this.#file.write()
    this.#writtenAge = Math.max(this.#writtenAge, age)
  }

  #content(): string {
    return `${JSON.stringify([...this.#entries].map(([uid, { verdict }]) => [uid, verdict]))}\n`
  }
}

type Kept = readonly [uid: string, verdict: Entry['verdict']]

/** `undefined` where there is no such file, or none that can be understood. */
function verdictsIn(file: string): readonly Kept[] | undefined {
  try {
    const entries: unknown = JSON.parse(String(readOwnFile(file)))
    return Array.isArray(entries) ? entries.filter(isKept) : undefined
  } catch {
    return undefined
  }
}

const isKept = (entry: unknown): entry is Kept =>
  Array.isArray(entry) &&
  typeof entry[0] === 'string' &&
  (entry[1] === 'propagated' || entry[1] === 'unchanged' || entry[1] === 'assumed')
