import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeFolder } from '../../src/base/folder.ts'

void t.test('a folder is made with those above it, closed to others', async (t) => {
  const path = join(t.testdir(), 'a', 'b')
  makeFolder(path, 0o700)
  t.equal(statSync(path).mode & 0o777, 0o700)
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  makeFolder(path, 0o700)
})

void t.test('a folder that cannot be created throws', async (t) => {
  t.throws(() => makeFolder(join(t.testdir({ file: '' }), 'file', 'below'), 0o700), {
    code: 'ENOTDIR',
  })
  if (existsSync('/proc/self'))
    t.throws(() => makeFolder('/proc/nope/below', 0o700), { code: 'ENOENT' })
})
