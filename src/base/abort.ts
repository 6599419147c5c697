/** What is asked of an AbortSignal here: a `LightAbort` has it too. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', act: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', act: () => void): void
}

/**
 * An AbortController and its signal in one, for what every request has. Node's own makes an event
 * of each abort and a record of each listener: with two of them a short request paid more for its
 * end than for its answer.
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
   * The first time counts. An act that fails keeps no other from being done, and is an uncaught
   * exception, as with an event.
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
    // While the acts are done, none is to move to the place of another.
    if (this.#aborted) this.#acts[at] = undefined
    else this.#acts.splice(at, 1)
  }
}

const once = { once: true }

/**
 * Aborts `child` when `parent` aborts, until disposed. `AbortSignal.any` would leave a record on a
 * parent that lives on (nodejs/node#54614); this leaves nothing once let go of.
 */
export const follow = (
  parent: AbortSignalLike,
  child: Pick<AbortController, 'abort'>,
): Disposable => onAbort(parent, () => child.abort(parent.reason))

/** Calls `act` when `signal` aborts (at once if it has), until disposed. */
export function onAbort(signal: AbortSignalLike, act: () => void): Disposable {
  if (signal.aborted) act()
  else signal.addEventListener('abort', act, once)
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', act) }
}
