import { aligned } from './aligned.ts'
import type { AnswerLine } from '../hub/pipeline/trace.ts'

/** Counts answers by component, request and source, to show the effect of the cache. */
export class AnswerCounts {
  readonly #rows = new Map<string, Record<string, number>>()

  add({ component, method, path, source }: AnswerLine): void {
    const key = `${component || 'unknown'}\t${method} ${path}`
    const row = this.#rows.get(key) ?? {}
    row[source] = (row[source] ?? 0) + 1
    this.#rows.set(key, row)
    // Bounded: a demonstration may run for days.
    const [oldest] = this.#rows.keys()
    if (this.#rows.size > 200 && oldest !== undefined) this.#rows.delete(oldest)
  }

  /** A table of component, request, and the answers of the cloud, the cache and the hub itself. */
  toString(): string {
    const rows = [...this.#rows].map(([key, counts]) => [
      ...key.split('\t'),
      ...(['cloud', 'cache', 'hub'] as const).map((source) => String(counts[source] ?? '')),
    ])
    return aligned(['component', 'request', 'cloud', 'cache', 'hub'], rows)
      .replace(/^/gm, '  ')
      .trimEnd()
  }
}
