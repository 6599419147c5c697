import t from 'tap'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/security.md', 'utf8')
const evidence = readFileSync('docs/design/security-tests.md', 'utf8')
const heading = '## What is defended, and how'
const defences = rowsUnder(evidence, heading)

const filesIn = (text: string): string[] =>
  [...text.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file)

void t.test('every defence names the tests that show it, and they exist', async (t) => {
  t.ok(defences.length > 0)
  t.strictSame(
    defences.map(([threat]) => threat),
    rowsUnder(page, heading).map(([threat]) => threat),
  )
  for (const [threat = '', shown = ''] of defences) {
    const files = filesIn(shown)
    t.ok(files.length > 0, threat)
    for (const file of files) t.ok(existsSync(file), `${threat}: ${file}`)
  }
})

void t.test('every attack among the tests stands beside the threat model', async (t) => {
  const named = new Set(filesIn(evidence))
  for (const file of readdirSync('test/attacks').filter((name) => name.endsWith('.test.ts')))
    t.ok(named.has(`test/attacks/${file}`), file)
})
