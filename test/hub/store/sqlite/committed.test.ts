import t from 'tap'
import { head, keyOf, object, pod, collection, replace } from '../../../contracts/object-store.ts'
import { database, open, refusing } from './opened.ts'

void t.test('only commits are reported, with the bytes that they wrote', async (t) => {
  const commits: number[] = []
  await using store = await open(t.testdir(), { onCommitted: (bytes) => commits.push(bytes) })
  const bytes = Buffer.alloc(1000)
  await Promise.all([
    store.put(keyOf('a'), pod, object('a', 1, { bytes })),
    store.put(keyOf('b'), pod, object('b', 2, { bytes })),
  ])
  t.strictSame(commits.splice(0), [2000], 'what goes together once')
  await store.put(keyOf('a'), pod, object('a', 1, { bytes }))
  t.strictSame(commits, [], 'what is unchanged is not written')
  await replace(store, collection(), head(5), [object('c', 3, { bytes })])
  t.equal(
    commits.splice(0).reduce((sum, each) => sum + each, 0),
    1000,
  )
  await replace(store, collection(), head(5), [object('c', 3, { bytes })])
  t.strictSame(commits, [])
})

void t.test('a refused write is no commit, nor is the store’s reaction to it', async (t) => {
  const directory = t.testdir()
  const told: string[] = []
  await using store = await open(directory, {
    onCommitted: () => told.push('committed'),
    report: (kind) => told.push(kind),
  })
  await replace(store, collection(), head(5), [object('c', 3)])
  told.length = 0
  const db = database(directory)
  {
    using refusal = refusing(db, 'bad')
    t.ok(refusal)
    const applied = store.apply(collection(), [{ type: 'ADDED', object: object('bad', 6) }])
    const put = store.put(keyOf('good'), pod, object('good', 7))
    await t.rejects(applied, { code: 'STORE_FAILURE' })
    await put
    await store.forget(keyOf('none'))
  }
  db.close()
  t.strictSame(told, ['committed', 'write', 'committed'], 'of one group the failure comes last')
})
