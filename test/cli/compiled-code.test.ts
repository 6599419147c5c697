import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Script } from 'node:vm'
import t from 'tap'
import { codeToKeep, keptCode } from '../../src/cli/compiled-code.ts'

void t.test('the code of the bundle is used where it is whole, and of this source', async (t) => {
  const state = join(t.testdir({ state: { compiled: {} } }), 'state')
  const folder = join(state, 'compiled')
  for (const each of [state, folder]) chmodSync(each, 0o700)
  const source = '(function (exports) { exports.some = () => 1 })'
  const script = new Script(source)
  const bundle = { source, createCachedData: () => script.createCachedData() }
  t.equal(keptCode(folder, source), undefined, 'nothing is kept yet')
  const file = join(folder, 'start.code')
  writeFileSync(file, codeToKeep(bundle))
  const kept = keptCode(folder, source)
  t.equal(new Script(source, { cachedData: kept }).cachedDataRejected, false)
  t.equal(keptCode(folder, source.replace('1', '2')), undefined, 'of a bundle of the same length')

  const damaged = codeToKeep(bundle)
  writeFileSync(file, damaged)
  damaged[damaged.length - 1] = ~(damaged.at(-1) ?? 0)
  writeFileSync(file, damaged)
  t.equal(keptCode(folder, source), undefined, 'damaged')
  writeFileSync(file, damaged.subarray(0, 5))
  t.equal(keptCode(folder, source), undefined, 'cut off')

  writeFileSync(file, codeToKeep(bundle))
  chmodSync(folder, 0o777)
  t.equal(keptCode(folder, source), undefined, 'where others may write')
  chmodSync(folder, 0o700)
  chmodSync(state, 0o777)
  t.equal(keptCode(folder, source), undefined, 'where others may put another folder')
  chmodSync(state, 0o1777)
  t.ok(keptCode(folder, source), 'where they may not touch what is another’s, they cannot')
})

void t.test('code that is read creates no folder', async (t) => {
  const folder = join(t.testdir(), 'compiled')
  t.equal(keptCode(folder, ''), undefined)
  t.notOk(existsSync(folder))
})
