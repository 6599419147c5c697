import t from 'tap'
import { existsSync, readFileSync } from 'node:fs'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/design/promises.md', 'utf8')
const jobs = Object.keys(
  (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }).scripts,
)

const command = /`npm (?:run )?(?<job>[\w:-]+)(?: -- (?<words>[^`]*))?`/g

for (const heading of ['Durability', 'Order', 'Staleness', 'Failover', 'Memory and processor']) {
  void t.test(`${heading}: a test shows each promise, and a command repeats it`, async (t) => {
    const rows = rowsUnder(page, `## ${heading}`)
    t.ok(rows.length > 3)
    for (const [promise = '', shown = '', repeated = ''] of rows) {
      const tests = testsIn(shown)
      t.ok(tests.length > 0, promise)
      for (const test of tests) t.ok(isThere(test), `${test.file}: “${test.title}”`)
      const commands = [...repeated.matchAll(command)]
      t.ok(commands.length > 0, `repeated: ${promise}`)
      for (const { groups: { job = '', words = '' } = {} } of commands) {
        t.ok(jobs.includes(job), `npm run ${job}`)
        const files = words.split(' ').filter((word) => word.includes('/'))
        for (const file of files) t.ok(existsSync(file), file)
      }
    }
  })
}
