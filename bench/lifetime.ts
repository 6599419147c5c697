import type { Scope } from '../test/kit/cluster/workspace.ts'

/**
 * What the kit's processes live as long as, where there is no test: ended in reverse order when
 * disposed.
 */
export class Lifetime implements Scope, AsyncDisposable {
  readonly #ends = new AsyncDisposableStack()
  readonly #say: (line: string) => void
  failed = false

  /** `say` is given the ends of logs when something failed. */
  constructor(say: (line: string) => void) {
    this.#say = say
  }

  teardown(act: () => Promise<void> | void): void {
    this.#ends.defer(act)
  }

  comment(...words: unknown[]): void {
    this.#say(words.join(' '))
  }

  passing(): boolean {
    return !this.failed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#ends.disposeAsync()
  }
}
