import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { Script } from 'node:vm'
import t from 'tap'
import { codeToKeep, keptCode } from '../../src/cli/compiled-code.ts'
import { plainNode } from '../kit/cluster/plain-node.ts'

const kept = pathToFileURL(join(import.meta.dirname, '..', '..', 'src', 'cli', 'compiled-code.ts'))

/**
 * What a process that keeps its code in `folder`, or only uses what is kept there, says of where
 * that is; '' where it uses none.
 */
function keptBy(
  directory: string,
  folder: string,
  by: 'keepCompiledCode' | 'reuseCompiledCode' = 'keepCompiledCode',
): string {
  const program = join(directory, 'program.mjs')
  writeFileSync(
    program,
    `import { getCompileCacheDir } from 'node:module'
     import { ${by} } from ${JSON.stringify(kept.href)}
     ${by}(${JSON.stringify(folder)})
     await import('./code.mjs')
     process.stdout.write(getCompileCacheDir() ?? '')`,
  )
  writeFileSync(join(directory, 'code.mjs'), 'export const some = () => 1')
  const [command, args] = plainNode(program)
  // The tests themselves run with code that is kept elsewhere.
  const env = { ...process.env, NODE_COMPILE_CACHE: undefined }
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', env })
  if (status !== 0) throw new Error(stderr)
  return stdout
}

void t.test('compiled code is saved when a process ends, mode 0700', async (t) => {
  const directory = t.testdir()
  const folder = join(directory, 'state', 'compiled')
  const inUse = keptBy(directory, folder)
  t.strictSame(
    readdirSync(folder).map((name) => join(folder, name)),
    [inUse],
  )
  t.equal(readdirSync(inUse).length, 1)
  t.equal(statSync(folder).mode & 0o777, 0o700)
})

void t.test('code of other Node releases is deleted', async (t) => {
  const directory = t.testdir({ compiled: { 'v1.0.0-x64-1': { code: 'old' } } })
  const folder = join(directory, 'compiled')
  chmodSync(folder, 0o700)
  const inUse = keptBy(directory, folder)
  t.strictSame(
    readdirSync(folder).map((name) => join(folder, name)),
    [inUse],
  )
})

void t.test('no code is loaded from a writable folder', async (t) => {
  const directory = t.testdir()
  const folder = join(directory, 'compiled')
  mkdirSync(folder)
  chmodSync(folder, 0o777)
  t.equal(keptBy(directory, folder), '')
  t.strictSame(readdirSync(folder), [])
})

void t.test('no code is loaded from below a world-writable folder', async (t) => {
  const directory = t.testdir({ state: {} })
  const folder = join(directory, 'state', 'compiled')
  chmodSync(join(directory, 'state'), 0o777)
  t.equal(keptBy(directory, folder), '')
  chmodSync(join(directory, 'state'), 0o1777)
  t.not(keptBy(directory, folder), '', 'where they may not touch what is another’s, they cannot')
})

void t.test('code runs where none can be saved', async (t) => {
  const directory = t.testdir({ file: '' })
  for (const folder of [join(directory, 'file', 'compiled'), '/proc/nowhere/compiled']) {
    t.equal(keptBy(directory, folder), '')
    t.notOk(existsSync(folder))
  }
})

void t.test('code saved by an earlier process is reused, and no folder is created', async (t) => {
  const directory = t.testdir()
  const folder = join(directory, 'compiled')
  t.equal(keptBy(directory, folder, 'reuseCompiledCode'), '')
  t.notOk(existsSync(folder), 'nothing is created')
  const inUse = keptBy(directory, folder)
  t.equal(keptBy(directory, folder, 'reuseCompiledCode'), inUse)
  chmodSync(folder, 0o777)
  t.equal(keptBy(directory, folder, 'reuseCompiledCode'), '', 'where others may write')
})

void t.test('the code of the bundle is used where it is whole, and of this source', async (t) => {
  const folder = join(t.testdir({ compiled: {} }), 'compiled')
  chmodSync(folder, 0o700)
  const source = '(function (exports) { exports.some = () => 1 })'
  const script = new Script(source)
  const bundle = { source, createCachedData: () => script.createCachedData() }
  t.equal(keptCode(folder, source), undefined, 'nothing is kept yet')
  const file = join(folder, 'start.code')
  writeFileSync(file, codeToKeep(bundle, true))
  const kept = keptCode(folder, source)
  t.equal(kept?.from, 'late')
  t.equal(new Script(source, { cachedData: kept?.code }).cachedDataRejected, false)
  t.equal(keptCode(folder, source.replace('1', '2')), undefined, 'of a bundle of the same length')

  const damaged = codeToKeep(bundle, false)
  writeFileSync(file, damaged)
  t.equal(keptCode(folder, source)?.from, 'early')
  damaged[damaged.length - 1] = ~(damaged.at(-1) ?? 0)
  writeFileSync(file, damaged)
  t.equal(keptCode(folder, source), undefined, 'damaged')
  writeFileSync(file, damaged.subarray(0, 5))
  t.equal(keptCode(folder, source), undefined, 'cut off')

  writeFileSync(file, codeToKeep(bundle, true))
  chmodSync(folder, 0o777)
  t.equal(keptCode(folder, source), undefined, 'where others may write')
})
