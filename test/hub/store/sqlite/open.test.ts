import t from 'tap'
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
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

void t.test('the store’s folder is open to its owner alone, also behind a link', async (t) => {
  const directory = t.testdir()
  const elsewhere = join(directory, 'larger-disk')
  mkdirSync(elsewhere)
  chmodSync(elsewhere, 0o755)
  symlinkSync(elsewhere, join(directory, 'cache'))
  await using store = await open(directory)
  t.ok(store)
  t.equal(statSync(elsewhere).mode & 0o777, 0o700)
  t.equal(statSync(fileOf(directory)).mode & 0o777, 0o600)
})
