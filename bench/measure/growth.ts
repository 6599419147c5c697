import { median } from './statistics.ts'

/** What something took at one size. */
export interface Point {
  readonly size: number
  readonly value: number
}

/**
 * By how much the values grow for each one of size: the median of the slopes between all pairs of
 * points (Theil and Sen), so that a few points that lie anywhere say nothing. NaN for fewer than
 * two.
 */
export const steadySlope = (points: readonly Point[]): number =>
  median(
    points.flatMap((from, at) =>
      points.slice(at + 1).map((to) => (to.value - from.value) / (to.size - from.size)),
    ),
  )

/** `value = factor * size ** slope`: a straight line where both axes are logarithmic. */
export interface Line {
  readonly slope: number
  readonly factor: number
}

/**
 * The least squares of the logarithms, over the upper half of the sizes and three at least: below,
 * what does not grow at all hides what does. A slope of 1 is linear growth. `undefined` for fewer
 * than two points above zero.
 */
export function fittedLine(points: readonly Point[]): Line | undefined {
  const upper = points
    .filter(({ size, value }) => size > 0 && value > 0)
    .toSorted((a, b) => a.size - b.size)
    .slice(-Math.max(3, Math.ceil(points.length / 2)))
  if (upper.length < 2) return undefined
  const logs = upper.map(({ size, value }) => ({ x: Math.log(size), y: Math.log(value) }))
  const mean = (of: (log: { x: number; y: number }) => number): number =>
    logs.reduce((sum, log) => sum + of(log), 0) / logs.length
  const [x0, y0] = [mean(({ x }) => x), mean(({ y }) => y)]
  const slope = mean(({ x, y }) => (x - x0) * (y - y0)) / mean(({ x }) => (x - x0) ** 2)
  return { slope, factor: Math.exp(y0 - slope * x0) }
}
