/**
 * Each metric is moved by a behaviour in a test that test/metrics/metrics-tests.md names. That the
 * test fails where the metric stands still is shown by `test/metrics/still/main.ts`.
 */
import t from 'tap'
import { readFileSync } from 'node:fs'
import { clusterMetricTable } from '../../src/metrics/cluster-table.ts'
import { metricTable } from '../../src/metrics/table.ts'
import { moved } from '../metrics/movers.ts'
import { isThere } from '../named-tests.ts'

const names = [metricTable, clusterMetricTable].flatMap((table) =>
  Object.values(table).map(({ name }) => name),
)

/** As it stands in a sample, where a histogram has further words. */
const sampleOf = (metric: string): RegExp => new RegExp(`${metric}(?:_count|_sum)?(?![a-z_])`)

void t.test('each metric has a row, in the order of the tables, and no others', async (t) => {
  t.strictSame(
    moved().map(({ metric }) => metric),
    names,
  )
})

void t.test('the tests that a row names are there, and read its metric', async (t) => {
  for (const { metric, tests } of moved()) {
    t.ok(tests.length > 0, `${metric} names a test`)
    for (const test of tests) {
      t.ok(isThere(test), `${metric}: ${test.file}: ${test.title}`)
      t.match(readFileSync(test.file, 'utf8'), sampleOf(metric), `${test.file} reads ${metric}`)
    }
  }
})
