import t from 'tap'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { flagRows, metricRows, rowsIn } from './tables.ts'

const read = (path: string) => readFileSync(path, 'utf8')

void t.test('the README has a row for every flag, and no other', async (t) => {
  const documented = rowsIn(read('README.md'), /^`--/)
  t.strictSame(documented, [...flagRows(false), ...flagRows(true)])
})

void t.test('the README has a row for every metric, and no other', async (t) => {
  t.strictSame(rowsIn(read('README.md'), /^`nodehub_/), metricRows())
})

void t.test('no document points to a file that is not there', async (t) => {
  const documents = globSync(['*.md', 'docs/**/*.md', 'filters/*.md', 'bench/*.md'])
  t.ok(documents.length >= 4)
  for (const document of documents) {
    const links = [...read(document).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(
      ([, path = '']) => path,
    )
    for (const path of links)
      t.ok(existsSync(join(dirname(document), path)), `${document}: ${path}`)
  }
})

void t.test('ARCHITECTURE.md names no file or folder that is not there', async (t) => {
  const named = [
    ...read('ARCHITECTURE.md').matchAll(/`((?:src|test|bench|filters|docs)\/[^`\s*]*)`/g),
  ]
  t.ok(named.length > 3)
  for (const [, path = ''] of named) t.ok(existsSync(path), path)
})
