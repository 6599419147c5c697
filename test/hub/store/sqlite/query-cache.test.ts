import t from 'tap'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { QueryCache } from '../../../../src/hub/store/sqlite/query-cache.ts'

void t.test('a query’s result is cached until another connection writes', async (t) => {
  const path = join(t.testdir(), 'file.db')
  using writer = new DatabaseSync(path)
  writer.exec('PRAGMA journal_mode = WAL; CREATE TABLE thing (name TEXT) STRICT')
  using reader = new DatabaseSync(path, { readOnly: true })
  const known = new QueryCache(reader)
  let reads = 0
  const things = (): number =>
    known.get('things', () => {
      reads += 1
      return reader.prepare('SELECT name FROM thing').all()
    }).length
  t.strictSame([things(), things(), reads], [0, 0, 1])
  writer.exec(`INSERT INTO thing VALUES ('a')`)
  t.strictSame([things(), things(), reads], [1, 1, 2])
  writer.exec(`BEGIN; INSERT INTO thing VALUES ('b')`)
  t.strictSame([things(), reads], [1, 2], 'what is not committed is not there')
  writer.exec('COMMIT')
  t.strictSame([things(), reads], [2, 3])
  reader.exec('BEGIN')
  t.equal(things(), 2)
  writer.exec(`INSERT INTO thing VALUES ('c')`)
  t.equal(things(), 2, 'one moment stays one moment')
  reader.exec('COMMIT')
  t.equal(things(), 3)
})

void t.test('a failed query is not cached', async (t) => {
  using file = new DatabaseSync(':memory:')
  const known = new QueryCache(file)
  t.throws(() =>
    known.get('a', () => {
      throw new Error('unreadable')
    }),
  )
  t.strictSame(
    known.get('a', () => [1]),
    [1],
  )
})
