/** The part of AbortSignal that the hub uses; `LightAbort` implements it too. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', act: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', act: () => void): void
}

/**
 * An AbortController and its signal in one, for every request. Node's own creates an event per
 * abort and a record per listener: with two of them the end of a short request cost more than its
 * answer.
 */
export class LightAbort implements AbortSignalLike {
  readonly #acts: ((() => void) | undefined)[] = []
  #aborted = false
  #reason: unknown

  get signal(): AbortSignalLike {
    return this
  }

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /**
   * Only the first call has an effect. A listener that throws does not stop the others; its error
   * becomes an uncaught exception, as with an event.
   */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    for (const act of this.#acts) {
      try {
        act?.()
      } catch (cause) {
        queueMicrotask(() => {
          throw cause
        })
      }
    }
    this.#acts.length = 0
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  addEventListener(_type: 'abort', act: () => void): void {
    if (!this.#aborted) this.#acts.push(act)
  }

  removeEventListener(_type: 'abort', act: () => void): void {
    const at = this.#acts.indexOf(act)
    if (at < 0) return
    // While `abort` iterates, the other listeners keep their index.
    if (this.#aborted) this.#acts[at] = undefined
    else this.#acts.splice(at, 1)
  }
}

const once = { once: true }

/**
 * Aborts `child` when `parent` aborts, until disposed. `AbortSignal.any` would leave a record on a
 * long-lived parent (nodejs/node#54614); this leaves nothing after disposal.
 */
export const follow = (
  parent: AbortSignalLike,
  child: Pick<AbortController, 'abort'>,
): Disposable => onAbort(parent, () => child.abort(parent.reason))

/** Calls `act` when `signal` aborts, at once if it has aborted, until disposed. */
export function onAbort(signal: AbortSignalLike, act: () => void): Disposable {
  if (signal.aborted) act()
  else signal.addEventListener('abort', act, once)
  return new AbortListener(signal, act)
}

/** A class, not a literal with a closure: a request makes several. */
class AbortListener implements Disposable {
  readonly #signal: AbortSignalLike
  readonly #act: () => void

  constructor(signal: AbortSignalLike, act: () => void) {
    this.#signal = signal
    this.#act = act
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#act)
  }
}

/** Resolves when `signal` aborts. */
export const untilAborted = (signal: AbortSignalLike): Promise<void> =>
  new Promise((resolve) => void onAbort(signal, resolve))

/** Resolves with `promise`, or with `undefined` when `signal` aborts. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignalLike | undefined,
): Promise<T | undefined> {
  if (signal === undefined) return promise
  const aborted = Promise.withResolvers<undefined>()
  using _listening = onAbort(signal, () => aborted.resolve(undefined))
  return await Promise.race([promise, aborted.promise])
}
