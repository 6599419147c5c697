import t from 'tap'
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { storedKey, storedToken } from '../../src/base/stored-key.ts'

const modeOf = (path: string): number => statSync(path).mode & 0o777

void t.test('a key is made once, closed to others, with the folder it lies in', async (t) => {
  const folder = join(t.testdir(), 'made')
  const file = join(folder, 'a.key')
  const key = storedKey(file)
  t.equal(key.byteLength, 32)
  t.strictSame([modeOf(folder), modeOf(file)], [0o700, 0o600])
  t.strictSame(storedKey(file), key)
  t.strictSame(readdirSync(folder), ['a.key'])
  t.notSame(storedKey(join(folder, 'b.key')), key)
})

void t.test('a key readable by others gets 0600', async (t) => {
  const file = join(t.testdir(), 'a.key')
  const key = storedKey(file)
  chmodSync(file, 0o644)
  t.strictSame(storedKey(file), key)
  t.equal(modeOf(file), 0o600)
})

void t.test('a key of another length is replaced', async (t) => {
  const file = join(t.testdir(), 'a.key')
  writeFileSync(file, 'short')
  t.equal(storedKey(file).byteLength, 32)
})

void t.test('a token is kept as a key is, in characters that a header may have', async (t) => {
  const file = join(t.testdir(), 'a.token')
  const token = storedToken(file).reveal()
  t.match(token, /^[\w-]{43}$/)
  t.equal(modeOf(file), 0o600)
  t.equal(storedToken(file).reveal(), token)
  t.equal(readFileSync(file, 'utf8'), token)
})
