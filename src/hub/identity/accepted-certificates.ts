import { now } from '../../base/clock.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import type { ClientCertificate } from '../../http/exchange/exchange.ts'

/** A certificate, and when it was last accepted, by the clock that the node had then. */
type Entry = readonly [fingerprint: string, acceptedAt: number]

/** A kubelet's last ones, and those of other programs that are the node. */
const mostEntries = 4

/** The time of an entry is written anew at most so often. */
const refreshMs = 60 * 60_000

/**
 * The certificates of this node that were accepted last, each while all of it was valid, on the
 * disk. Faults that OpenSSL does not report beside a wrong date (a path length, an unknown
 * extension, a weak digest) it would have reported then.
 */
export class AcceptedCertificates implements AsyncDisposable {
  readonly #file: StateFile
  readonly #onFailure: (cause: unknown) => void
  /** The last one accepted comes last. */
  readonly #entries: Map<string, number>
  /** `onFailure` is called where the file cannot be written; it is tried again within the hour. */
  constructor(file: string, onFailure: (cause: unknown) => void) {
    this.#file = new StateFile(file, () => `${JSON.stringify([...this.#entries])}\n`)
    this.#onFailure = onFailure
    this.#entries = new Map(storedEntries(file, isEntry))
  }

  /** To be called with a certificate that is accepted now. */
  add({ fingerprint }: ClientCertificate): void {
    const before = this.#entries.get(fingerprint)
    this.#entries.delete(fingerprint)
    const present = now()
    const isCurrent = before !== undefined && Math.abs(present - before) < refreshMs
    this.#entries.set(fingerprint, isCurrent ? before : present)
    if (isCurrent) return
    const [oldest = ''] = this.#entries.keys()
    if (this.#entries.size > mostEntries) this.#entries.delete(oldest)
    this.#file.write().catch(this.#onFailure)
  }

  /**
   * Whether a certificate was accepted before, and was still valid when one was accepted last. One
   * that has ended since was good until then; one that is yet to begin shows that the clock runs
   * behind, as on a node that has none without power and starts in 1970.
   */
  wasGood({ fingerprint, validFrom, validTo }: ClientCertificate): boolean {
    const last = [...this.#entries.values()].at(-1)
    if (last === undefined || !this.#entries.has(fingerprint)) return false
    return validFrom <= last && last <= validTo
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

const isEntry = (entry: unknown): entry is Entry =>
  Array.isArray(entry) && typeof entry[0] === 'string' && Number.isFinite(entry[1])
