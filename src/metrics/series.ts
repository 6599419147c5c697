import type { Bounds } from './labels.ts'
import type { Label } from './table.ts'

/** Several times the series of a busy node. */
export const mostSeries = 2_000

export type Labels = Readonly<Record<string, string>>

/**
 * The bounded labels of a metric, the same object for equal labels. Beyond the limit of
 * combinations every label is `other`.
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
