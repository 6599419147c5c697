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
  const root = new Branch()
  let size = 0
  const others = Object.fromEntries(names.map((name) => [name, 'other']))
  return (labels) => {
    let branch = root
    for (const name of names) {
      const value = bounds[name](labels[name] ?? '')
      let next = branch.byValue.get(value)
      if (next === undefined) {
        if (size >= mostSeries) return others
        branch.byValue.set(value, (next = new Branch()))
      }
      branch = next
    }
    if (branch.labels === undefined) {
      size += 1
      branch.labels = Object.fromEntries(
        names.map((name) => [name, bounds[name](labels[name] ?? '')]),
      )
    }
    return branch.labels
  }
}

/** A tree, by the values of the labels in order: a look-up makes no string. */
class Branch {
  readonly byValue = new Map<string, Branch>()
  labels: Labels | undefined
}
