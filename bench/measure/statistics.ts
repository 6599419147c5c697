/** What repeated measurements of one thing come to. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/**
 * The smallest of `values` that at least `share` (0 to 1) of them do not exceed: the nearest rank.
 * NaN for none.
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = ascending(values)
  const rank = Math.ceil(share * sorted.length)
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1] ?? Number.NaN
}

/** The value in the middle; between the two in the middle if their number is even. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values)
  const half = sorted.length / 2
  const low = sorted[Math.ceil(half) - 1] ?? Number.NaN
  const high = sorted[Math.floor(half)] ?? Number.NaN
  return (low + high) / 2
}

/** `undefined` for no values at all. */
export function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined
  const sorted = ascending(values)
  return { median: median(sorted), min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 }
}

/**
 * The spread of what `values` are to `bases`, round by round: what slows a whole round down cancels
 * out, which it would not if two medians were divided. Rounds in which either is missing, or the
 * base is nothing, are left out.
 */
export function ratios(
  values: readonly (number | undefined)[],
  bases: readonly (number | undefined)[],
): Spread | undefined {
  return spread(
    values.flatMap((value, round) => {
      const base = bases[round]
      return value === undefined || base === undefined || base === 0 ? [] : [value / base]
    }),
  )
}

const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)
