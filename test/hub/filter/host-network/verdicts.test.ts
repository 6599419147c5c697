import t, { type Test } from 'tap'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { VerdictStore, type PodVerdict } from '../../../../src/hub/filter/host-network/verdicts.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

interface Given {
  readonly shownBefore?: readonly string[]
}

/** Verdicts in a folder of the test, each `open` as another process has them. */
function place(t: Test) {
  const file = join(rootFolder(t), 'state', 'host-network.json')
  const failures: unknown[] = []
  return {
    file,
    failures,
    open: ({ shownBefore = [] }: Given = {}): VerdictStore => {
      const verdicts = new VerdictStore(file, {
        shownBefore: () => shownBefore,
        onKept: () => undefined,
        onRevised: () => undefined,
        onFailure: (cause) => failures.push(cause),
      })
      t.teardown(() => verdicts[Symbol.asyncDispose]())
      return verdicts
    },
    written: (): unknown => JSON.parse(readFileSync(file, 'utf8')),
  }
}

void t.test('nothing is written while every pod is shown unchanged', async (t) => {
  const { file, open } = place(t)
  const verdicts = open({ shownBefore: ['old'] })
  t.equal(verdicts.settle([['a', 'unchanged']]), undefined, 'no request waits')
  t.equal(verdicts.of('a'), 'unchanged', 'it is known all the same')
  await verdicts[Symbol.asyncDispose]()
  t.notOk(existsSync(file))
})

void t.test('a verdict is on the disk before it is settled, and the first one stays', async (t) => {
  const { open, written } = place(t)
  const verdicts = open()
  verdicts.keep()
  await verdicts.settle([
    ['a', 'propagated'],
    ['b', 'unchanged'],
  ])
  t.strictSame(written(), [
    ['a', 'propagated'],
    ['b', 'unchanged'],
  ])
  t.equal(verdicts.settle([['a', 'unchanged']]), undefined, 'what is there needs no write')
  t.equal(verdicts.of('a'), 'propagated')
  const next = open()
  t.equal(next.of('a'), 'propagated')
  t.equal(next.of('b'), 'unchanged')
  await next.settle([['a', 'unchanged']])
  t.equal(next.of('a'), 'propagated')
})

void t.test(
  'a pod that is shown propagated in mode off is kept, and all from then on',
  async (t) => {
    const { open, written } = place(t)
    const verdicts = open({ shownBefore: ['stored'] })
    await verdicts.settle([['first', 'unchanged']])
    await verdicts.settle([['taken-over', 'propagated']])
    await verdicts.settle([['later', 'unchanged']])
    t.strictSame(written(), [
      ['first', 'unchanged'],
      ['taken-over', 'propagated'],
      ['stored', 'assumed'],
      ['later', 'unchanged'],
    ])
  },
)

void t.test('pods that may have been shown before verdicts were kept are assumed so', async (t) => {
  const { open, written } = place(t)
  const verdicts = open({ shownBefore: ['a', 'b', 'seen'] })
  t.equal(verdicts.settle([['seen', 'unchanged']]), undefined)
  verdicts.keep()
  t.strictSame([verdicts.of('a'), verdicts.mayHaveBeenShown('a')], [undefined, true])
  await verdicts.settle([
    ['b', 'propagated'],
    ['seen', 'propagated'],
    ['new', 'propagated'],
  ])
  t.equal(verdicts.of('b'), 'propagated', 'its status has said so')
  t.strictSame(written(), [
    ['seen', 'unchanged'],
    ['a', 'assumed'],
    ['b', 'propagated'],
    ['new', 'propagated'],
  ])
  const next = open()
  t.ok(next.mayHaveBeenShown('a'))
  await next.settle([['a', 'unchanged']])
  t.strictSame([next.of('a'), next.mayHaveBeenShown('a')], ['unchanged', false])
})

void t.test('once verdicts are kept, even none, earlier observations do not count', async (t) => {
  const { open, written } = place(t)
  const first = open()
  first.keep()
  await first[Symbol.asyncDispose]()
  t.strictSame(written(), [])
  const next = open({ shownBefore: ['a'] })
  next.keep()
  await next.settle([['a', 'propagated']])
  t.equal(next.of('a'), 'propagated')
})

void t.test('a malformed file counts as none', async (t) => {
  for (const content of ['', '{}', '[["a","propagated"', 'null']) {
    const { file, open } = place(t)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, content)
    const verdicts = open({ shownBefore: ['a'] })
    t.notOk(verdicts.areKept)
    verdicts.keep()
    t.ok(verdicts.mayHaveBeenShown('a'))
  }
  const { file, open } = place(t)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, '[["a","propagated"],["b","otherwise"],7,["c"]]')
  const verdicts = open()
  t.ok(verdicts.areKept)
  t.equal(verdicts.of('a'), 'propagated')
  t.equal(verdicts.of('b'), undefined)
})

void t.test('a verdict that cannot be written is not settled, and is retried', async (t) => {
  const { file, open, failures, written } = place(t)
  const folder = join(file, '..')
  writeFileSync(folder, 'a file where the folder should be')
  const verdicts = open()
  verdicts.keep()
  await t.rejects(Promise.resolve(verdicts.settle([['a', 'propagated']])))
  await t.rejects(Promise.resolve(verdicts.settle([['a', 'propagated']])), 'the second try too')
  t.equal(failures.length, 1, 'no request waited for the first write')
  rmSync(folder)
  await verdicts.settle([['a', 'unchanged']])
  t.strictSame(written(), [['a', 'propagated']], 'by the first verdict')
})

void t.test('a verdict goes when its pod has gone from the cache, not before', async (t) => {
  const { open, written } = place(t)
  const verdicts = open()
  verdicts.keep()
  await verdicts.settle([
    ['a', 'propagated'],
    ['b', 'propagated'],
  ])
  verdicts.retain(new Set(['a']), true)
  t.equal(verdicts.of('b'), 'propagated', 'it is about to be stored')
  verdicts.retain(new Set(['a', 'b']), true)
  verdicts.retain(new Set(['b']), true)
  t.equal(verdicts.of('a'), undefined)
  await verdicts.settle([['c', 'unchanged']])
  t.strictSame(written(), [
    ['b', 'propagated'],
    ['c', 'unchanged'],
  ])
})

void t.test(
  'verdicts of an earlier process go once a list of the cloud lacks their pods',
  async (t) => {
    const { open } = place(t)
    const first = open()
    first.keep()
    await first.settle([
      ['gone', 'propagated'],
      ['listed', 'propagated'],
      ['stored', 'propagated'],
    ])
    await first[Symbol.asyncDispose]()
    const next = open()
    next.retain(new Set(['stored']), false)
    t.equal(next.of('gone'), 'propagated', 'the cache may have lost it')
    await next.settle([['listed', 'unchanged']])
    next.retain(new Set(['stored']), true)
    t.equal(next.of('gone'), undefined)
    t.equal(next.of('listed'), 'propagated', 'a list that has it is under way')
    t.equal(next.of('stored'), 'propagated')
  },
)

void t.test('verdicts are limited to the pods that a node could run', async (t) => {
  const { open } = place(t)
  const verdicts = open()
  const many = Array.from({ length: 4096 }, (_, at): PodVerdict => [`pod-${at}`, 'propagated'])
  await verdicts.settle(many)
  verdicts.retain(new Set(many.map(([uid]) => uid).filter((uid) => uid !== 'pod-7')), true)
  await verdicts.settle([['one-more', 'propagated']])
  t.equal(verdicts.of('pod-7'), undefined, 'first what the cache never had')
  await verdicts.settle([['another', 'propagated']])
  t.equal(verdicts.of('one-more'), undefined, 'it was not stored either')
  verdicts.retain(new Set([...many.map(([uid]) => uid), 'another']), true)
  await verdicts.settle([['last', 'propagated']])
  t.equal(verdicts.of('pod-0'), undefined, 'then the oldest')
  t.equal(verdicts.of('pod-1'), 'propagated')
})
