import type { Bounds } from './labels.ts'
import type { Label } from './table.ts'

/** Several times what a busy node shows of one metric. */
export const mostSeries = 2_000

export type Labels = Readonly<Record<string, string>>

/**
 * What a metric with these labels may tell apart: each value is bounded, and where known words are
 * combined in more ways than a node has use for, the rest counts together, `other` in every label.
 * The same object for the same labels.
 */
export function seriesWith(
  names: readonly Label[],
  bounds: Bounds,
): (labels: Readonly<Record<string, string>>) => Labels {
  const known = new Map<string, Labels>()
  const others = Object.fromEntries(names.map((name) => [name, 'other']))
  return (labels) => {
    let key = ''
    for (const name of names) key += `${bounds[name](labels[name] ?? '')}\n`
    const found = known.get(key)
    if (found) return found
    if (known.size >= mostSeries) return others
    const values = key.split('\n')
    const series = Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']))
    known.set(key, series)
    return series
  }
}
