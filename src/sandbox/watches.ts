import type { SeenRequest } from './requests.ts'
import type { OpenWatch } from './watch.ts'

/** The open watches, and the callers that wait for one. */
export class Watches {
  readonly #open = new Map<SeenRequest, OpenWatch>()
  readonly #waiting = new Set<() => void>()

  count(match: (request: SeenRequest) => boolean = () => true): number {
    return [...this.#open.keys()].filter(match).length
  }

  add(request: SeenRequest, watch: OpenWatch): Disposable {
    this.#open.set(request, watch)
    this.#changed()
    return {
      [Symbol.dispose]: () => {
        this.#open.delete(request)
        this.#changed()
      },
    }
  }

  /** Resolves when `count(match)` is `wanted`. */
  until(wanted: number, match?: (request: SeenRequest) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.count(match) !== wanted) return
        this.#waiting.delete(check)
        resolve()
      }
      this.#waiting.add(check)
      check()
    })
  }

  /** Ends them cleanly, as if their deadlines had come. */
  end(match: (request: SeenRequest) => boolean = () => true): void {
    for (const [request, watch] of this.#open) if (match(request)) watch.end()
  }

  #changed(): void {
    for (const check of this.#waiting) check()
  }
}
