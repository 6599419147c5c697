import { readFileSync } from 'node:fs'
import { testsIn, type NamedTest } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

/** A metric, and the tests in which a behaviour moves it. */
interface Moved {
  readonly metric: string
  readonly tests: readonly NamedTest[]
}

/** The metrics of test/metrics/metrics-tests.md, with the tests that it names for them. */
export const moved = (): readonly Moved[] =>
  rowsUnder(readFileSync('test/metrics/metrics-tests.md', 'utf8'), '# Tests of the metrics').map(
    ([metric = '', by = '']) => ({
      metric: metric.replaceAll('`', ''),
      tests: testsIn(by),
    }),
  )
