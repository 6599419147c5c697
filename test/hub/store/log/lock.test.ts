import t from 'tap'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { collection, head, listed, object, replace } from '../../../contracts/object-store.ts'
import { crasher, open, faults } from './opened.ts'

t.beforeEach(() => faults.splice(0))

void t.test('a directory is used by one store at a time', async (t) => {
  const directory = t.testdir()
  {
    await using store = await open(directory)
    for (let i = 0; i < 2; i += 1) {
      await t.rejects(open(directory), {
        code: 'STORE_FAILURE',
        message:
          /^the store cannot be opened: another hub(, process \d+,)? uses .*: stop it, or give this one a --root-dir of its own$/,
      })
    }
    const child = fork(crasher, [directory, '0'], { silent: true })
    const [code] = (await once(child, 'exit')) as [number | null]
    t.equal(code, 1, 'nor by another process')
    await replace(store, collection(), head(5), [object('a', 1)])
    t.strictSame(faults, [])
  }
  await using store = await open(directory)
  t.strictSame(listed(store, collection()), ['a at 1'], 'after it is closed the next one has it')
})

void t.test('a store that could not be opened holds nothing', async (t) => {
  const directory = t.testdir({ cache: { '0000000001.log': {} } })
  await t.rejects(open(directory))
  rmdirSync(join(directory, 'cache', '0000000001.log'))
  await using _ = await open(directory)
})

void t.test('a hub that was killed leaves the directory free, however long its path', async (t) => {
  const directory = join(t.testdir(), 'deep'.repeat(40))
  const child = fork(crasher, [directory, '1000000'], { silent: true })
  await once(child, 'message')
  await t.rejects(open(directory), { message: new RegExp(`another hub, process ${child.pid},`) })
  child.kill('SIGKILL')
  await once(child, 'exit')
  await using _ = await open(directory)
  t.equal(
    readdirSync(join(directory, 'cache')).filter((name) => name.startsWith('lock.db.')).length,
    1,
  )
})
