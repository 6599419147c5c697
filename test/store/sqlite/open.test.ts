import t from 'tap'
import { rmSync } from 'node:fs'
import { fileOf, open, writersOf } from './opened.ts'

void t.test('a store that cannot be read leaves no writer behind', async (t) => {
  const directory = t.testdir()
  const takeAway = (): void => rmSync(fileOf(directory))
  const spoil = (worker: NodeJS.EventEmitter): unknown => worker.once('message', takeAway)
  process.once('worker', spoil)
  const writers = writersOf(t)
  await t.rejects(open(directory), { code: 'STORE_FAILURE' })
  t.strictSame(
    writers.map(({ threadId }) => threadId),
    [-1],
    'it has ended',
  )
  await using again = await open(directory)
  t.ok(again, 'and the directory is free')
})
