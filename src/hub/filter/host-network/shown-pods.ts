import { readOwnFile } from '../../../base/own-file.ts'
import { StateFile } from '../../../base/state-file.ts'

/** How the kubelet gets a pod that does not request the host's network. */
export type Shown = 'propagated' | 'unchanged'

/** A pod's uid, and how the kubelet gets it. */
export type ShownPod = readonly [uid: string, shown: Shown]

/**
 * More than a node runs pods. Beyond it the first to go are those that the cache does not have,
 * then the oldest, whose status shows their network by then.
 */
export const mostPods = 4096

export interface ShownPodsOptions {
  /** The cached pods: all that the kubelet can have got before the file was begun. */
  readonly cached: () => Iterable<ShownPod>
  /** Called once there is a file, from which on the filter acts in every mode. */
  readonly onKept: () => void
  /** Called where a write fails that no caller awaits. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * On which network the kubelet first got each pod, which holds until the pod is gone: a kubelet
 * restarts a pod whose network changes. It is a file from `keep` on, or from the first propagated
 * pod on; before, every pod was sent unchanged, and nothing is written.
 *
 * The file is beside the cache, not in it, so that it survives a discarded cache. If the file is
 * lost or unreadable, the status of each pod shows its network.
 */
export class ShownPods implements AsyncDisposable {
  readonly #file: StateFile
  readonly #options: ShownPodsOptions
  readonly #pods: Map<string, Shown>
  readonly #unwritten = new Set<string>()
  /** The uids that the cache had at the last check. */
  #cached: ReadonlySet<string> = new Set()
  #kept: boolean

  constructor(file: string, options: ShownPodsOptions) {
    const read = podsIn(file)
    this.#file = new StateFile(file, () => `${JSON.stringify([...this.#pods])}\n`)
    this.#options = options
    this.#pods = new Map(read)
    this.#kept = read !== undefined
  }

  /** Whether there is a file; once there is, every pod is in it before the kubelet gets it. */
  get areKept(): boolean {
    return this.#kept
  }

  of(uid: string): Shown | undefined {
    return this.#pods.get(uid)
  }

  /**
   * Writes pods from now on. Must be called before any pod is sent on which inputs besides the pod
   * decide.
   */
  keep(): void {
    if (this.#begin()) this.#write().catch(this.#options.onFailure)
  }

  /**
   * Notes pods that the kubelet is about to get; what was noted of one stays. Returns a promise
   * where one of them has to be on the disk and is not yet: it resolves when it is, and rejects
   * where the write fails; the next call tries again.
   */
  settle(pods: readonly ShownPod[]): Promise<void> | undefined {
    if (!this.#kept && pods.every(([, shown]) => shown === 'unchanged')) return undefined
    for (const pod of pods) this.#add(pod)
    this.#begin()
    return pods.some(([uid]) => this.#unwritten.has(uid)) ? this.#write() : undefined
  }

  /** Drops the pods that were cached at the last call, and no longer are. */
  retain(cached: ReadonlySet<string>): void {
    const gone = [...this.#cached].filter((uid) => !cached.has(uid) && this.#drop(uid))
    this.#cached = cached
    if (gone.length > 0) this.#write().catch(this.#options.onFailure)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }

  /** False where there was a file already. */
  #begin(): boolean {
    if (this.#kept) return false
    this.#kept = true
    for (const pod of this.#options.cached()) this.#add(pod)
    this.#options.onKept()
    return true
  }

  #add([uid, shown]: ShownPod): void {
    if (this.#pods.has(uid)) return
    if (this.#pods.size >= mostPods) this.#dropOne()
    this.#pods.set(uid, shown)
    this.#unwritten.add(uid)
  }

  #dropOne(): void {
    const uncached = this.#pods.keys().find((uid) => !this.#cached.has(uid))
    const uid = uncached ?? this.#pods.keys().next().value
    if (uid !== undefined) this.#drop(uid)
  }

  #drop(uid: string): boolean {
    this.#unwritten.delete(uid)
    return this.#pods.delete(uid)
  }

  async #write(): Promise<void> {
    const written = [...this.#unwritten]
    await this.#file.write()
    for (const uid of written) this.#unwritten.delete(uid)
  }
}

/** `undefined` where the file is absent or invalid. */
function podsIn(file: string): readonly ShownPod[] | undefined {
  try {
    const entries: unknown = JSON.parse(String(readOwnFile(file)))
    return Array.isArray(entries) ? entries.flatMap(podOf) : undefined
  } catch {
    return undefined
  }
}

/** 0.2.0 has other words as well, all of them for pods that it had not propagated. */
function podOf(entry: unknown): readonly ShownPod[] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return []
  return [[entry[0], entry[1] === 'propagated' ? 'propagated' : 'unchanged']]
}
