import t, { type Test } from 'tap'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  mostPods,
  ShownPods,
  type ShownPod,
} from '../../../../src/hub/filter/host-network/shown-pods.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

/** A file in a folder of the test, each `open` as another process has it. */
function place(t: Test) {
  const file = join(rootFolder(t), 'state', 'host-network.json')
  const failures: unknown[] = []
  return {
    file,
    failures,
    open: (cached: readonly ShownPod[] = []): ShownPods => {
      const kept = new ShownPods(file, {
        cached: () => cached,
        onKept: () => undefined,
        onFailure: (cause) => failures.push(cause),
      })
      t.teardown(() => kept[Symbol.asyncDispose]())
      return kept
    },
    written: (): unknown => JSON.parse(readFileSync(file, 'utf8')),
  }
}

void t.test('cached pods count as shown when the file is begun, and not later', async (t) => {
  const { open, written } = place(t)
  const first = open([['a', 'unchanged']])
  first.keep()
  await first.settle([
    ['a', 'propagated'],
    ['new', 'propagated'],
  ])
  await first[Symbol.asyncDispose]()
  t.strictSame(written(), [
    ['a', 'unchanged'],
    ['new', 'propagated'],
  ])
  const next = open([['recorded', 'unchanged']])
  next.keep()
  await next.settle([['recorded', 'propagated']])
  t.equal(next.of('recorded'), 'propagated', 'a pod that never left the hub is new')
})

void t.test('a file without pods is one, too', async (t) => {
  const { open, written } = place(t)
  const first = open()
  first.keep()
  await first[Symbol.asyncDispose]()
  t.strictSame(written(), [])
  t.ok(open().areKept)
})

void t.test('a malformed file counts as none', async (t) => {
  for (const content of ['', '{}', '[["a","propagated"', 'null']) {
    const { file, open } = place(t)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, content)
    t.notOk(open().areKept)
  }
  const { file, open } = place(t)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, '[["a","propagated","later"],["b","refused"],["c","assumed"],7,[]]')
  const kept = open()
  t.ok(kept.areKept)
  t.strictSame(
    ['a', 'b', 'c'].map((uid) => kept.of(uid)),
    ['propagated', 'unchanged', 'unchanged'],
  )
})

void t.test('a pod that cannot be written is not settled, and is retried', async (t) => {
  const { file, open, failures, written } = place(t)
  const folder = join(file, '..')
  writeFileSync(folder, 'a file where the folder should be')
  const kept = open()
  kept.keep()
  await t.rejects(Promise.resolve(kept.settle([['a', 'propagated']])))
  await t.rejects(Promise.resolve(kept.settle([['a', 'propagated']])), 'the second try too')
  t.equal(failures.length, 1, 'no request waited for the first write')
  rmSync(folder)
  await kept.settle([['a', 'unchanged']])
  t.strictSame(written(), [['a', 'propagated']], 'as it was first')
})

void t.test('pods are limited to those that a node could run', async (t) => {
  const { open } = place(t)
  const kept = open()
  const many = Array.from({ length: mostPods }, (_, at): ShownPod => [`pod-${at}`, 'propagated'])
  await kept.settle(many)
  kept.retain(new Set(many.map(([uid]) => uid).filter((uid) => uid !== 'pod-7')))
  await kept.settle([['one-more', 'propagated']])
  t.equal(kept.of('pod-7'), undefined, 'first what the cache never had')
  await kept.settle([['another', 'propagated']])
  t.equal(kept.of('one-more'), undefined, 'it was not cached either')
  kept.retain(new Set([...many.map(([uid]) => uid), 'another']))
  await kept.settle([['last', 'propagated']])
  t.equal(kept.of('pod-0'), undefined, 'then the oldest')
  t.equal(kept.of('pod-1'), 'propagated')
})
