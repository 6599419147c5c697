import type { RowResult } from '../measure/row.ts'

/** By less than this share, two builds are called alike. */
const leastShare = 0.03

/**
 * What differs between two builds that were measured in turn: their figures were divided round by
 * round, and a difference counts where all rounds are on one side, the median by more than three in
 * a hundred. By chance alone that happens to one figure in `2 ** (rounds - 1)`.
 */
export function pairedLines(rows: readonly RowResult[]): string[] {
  const figures = rows.flatMap(({ name, metrics, peers }) =>
    metrics.flatMap((metric) => {
      const figure = peers.find(({ peer }) => peer === 'hub')?.figures[metric.key]
      const ratio = figure?.ratios.against
      return figure && ratio ? [{ name, metric, ratio, rounds: figure.rounds }] : []
    }),
  )
  const apart = figures.filter(
    ({ ratio: { min, max, median } }) => (min > 1 || max < 1) && Math.abs(median - 1) > leastShare,
  )
  const lines = apart.map(({ name, metric: { title, better = 'less' }, ratio }) => {
    const word = ratio.median > 1 === (better === 'more') ? 'better' : 'worse'
    const { median, min, max } = ratio
    return `${word}: ${name}, ${title}: ${median.toFixed(3)} of the other build’s (${min.toFixed(3)} to ${max.toFixed(3)})`
  })
  const rounds = Math.min(...figures.map((figure) => figure.rounds))
  const chance = figures.length / 2 ** (rounds - 1)
  return [
    ...lines.toSorted().toReversed(),
    `${apart.length} of ${figures.length} figures differ in all ${rounds} rounds; by chance up to ${Math.ceil(chance)} would`,
  ]
}
