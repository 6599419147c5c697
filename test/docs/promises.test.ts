import t from 'tap'
import { readFileSync } from 'node:fs'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/promises.md', 'utf8')
const jobs = Object.keys(
  (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }).scripts,
)

for (const heading of ['Durability', 'Order', 'Staleness', 'Failover', 'Memory and processor']) {
  void t.test(`${heading}: an existing test shows each promise`, async (t) => {
    const rows = rowsUnder(page, `## ${heading}`)
    t.ok(rows.length > 3)
    for (const [promise = '', shown = '', atLength = ''] of rows) {
      const tests = testsIn(shown)
      t.ok(tests.length > 0, promise)
      for (const test of tests) t.ok(isThere(test), `${test.file}: “${test.title}”`)
      for (const [, job = ''] of atLength.matchAll(/npm run ([\w:-]+)/g)) t.ok(jobs.includes(job))
    }
  })
}
