import { Broadcast } from '../base/broadcast.ts'
import type { SeenRequest } from './requests.ts'
import type { OpenWatch } from './watch.ts'

/** The open watches. */
export class Watches {
  readonly #open = new Map<SeenRequest, OpenWatch>()
  readonly #changed = new Broadcast()

  count(match: (request: SeenRequest) => boolean = () => true): number {
    return [...this.#open.keys()].filter(match).length
  }

  add(request: SeenRequest, watch: OpenWatch): Disposable {
    this.#open.set(request, watch)
    this.#changed.announce()
    return {
      [Symbol.dispose]: () => {
        this.#open.delete(request)
        this.#changed.announce()
      },
    }
  }

  /** Resolves when `count(match)` is `wanted`. */
  until(wanted: number, match?: (request: SeenRequest) => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const check = (): void => {
      if (this.count(match) === wanted) resolve()
    }
    const waiting = this.#changed.listen(check)
    check()
    return promise.finally(() => waiting[Symbol.dispose]())
  }

  /** Ends them cleanly, as if their deadlines had come. */
  end(match: (request: SeenRequest) => boolean = () => true): void {
    for (const [request, watch] of this.#open) if (match(request)) watch.end()
  }
}
