import t from 'tap'
import { median, percentile, ratios, spread } from '../../bench/measure/statistics.ts'

void t.test('a percentile is the nearest rank: a value that was measured', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, at) => 100 - at)
  t.equal(percentile(hundred, 0.5), 50)
  t.equal(percentile(hundred, 0.99), 99)
  t.equal(percentile(hundred, 1), 100)
  t.equal(percentile(hundred, 0), 1)
  t.equal(percentile([7], 0.99), 7)
  t.ok(Number.isNaN(percentile([], 0.5)), 'of nothing there is none')
})

void t.test('a median lies between the two in the middle', async (t) => {
  t.equal(median([9, 1, 5]), 5)
  t.equal(median([4, 1, 3, 100]), 3.5)
  t.ok(Number.isNaN(median([])), 'of nothing there is none')
})

void t.test('numbers are ordered by size, not as text', async (t) => {
  t.strictSame(spread([10, 9, 100]), { median: 10, min: 9, max: 100 })
  t.equal(spread([]), undefined)
})

void t.test('a ratio is taken round by round, so that a slow round cancels out', async (t) => {
  t.strictSame(ratios([20, 200, 22], [10, 100, 10]), { median: 2, min: 2, max: 2.2 })
})

void t.test('rounds without a value or a base give no ratio', async (t) => {
  t.strictSame(ratios([20, undefined, 30, 4], [10, 5, 0, undefined]), { median: 2, min: 2, max: 2 })
  t.equal(ratios([1], [undefined]), undefined)
})
