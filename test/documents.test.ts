import t from 'tap'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rowsUnder, tables } from './tables.ts'

const read = (path: string) => readFileSync(path, 'utf8')

for (const { file, heading, rows } of tables) {
  void t.test(`${file}, ${heading}: a row for each there is, and no other`, async (t) => {
    t.strictSame(rowsUnder(read(file), heading), rows(), 'node test/write-tables.ts mends it')
  })
}

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
