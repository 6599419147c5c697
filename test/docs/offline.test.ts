import t from 'tap'
import { readFileSync } from 'node:fs'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/offline.md', 'utf8')
const evidence = readFileSync('docs/design/offline-tests.md', 'utf8')

for (const heading of ['## Reads', '## Writes']) {
  void t.test(`each row on offline answers names a test: ${heading}`, async (t) => {
    const rows = rowsUnder(evidence, heading)
    t.ok(rows.length > 5)
    t.strictSame(
      rows.map(([what]) => what),
      rowsUnder(page, heading).map(([what]) => what),
    )
    for (const [what = '', shown = ''] of rows) {
      const named = testsIn(shown)
      t.ok(named.length > 0, `${what} names a test`)
      for (const test of named) t.ok(isThere(test), `${what}: ${test.file}: ${test.title}`)
    }
  })
}
