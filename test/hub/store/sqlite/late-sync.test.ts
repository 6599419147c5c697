import t, { type Test } from 'tap'
import { cpSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import { LateSync } from '../../../../src/hub/store/sqlite/late-sync.ts'
import {
  changed,
  collection,
  got,
  head,
  keyOf,
  object,
  pod,
  replace,
} from '../../../contracts/object-store.ts'
import { fileOf, open, pods } from './opened.ts'
import { until } from '../../../kit/until.ts'
import { rootFolder } from '../../../kit/root-folder.ts'

const soon = 10

/** On a clock that is set forward by hand. */
function onClock(t: Test) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const log = join(rootFolder(t), 'log')
  writeFileSync(log, 'log')
  let count = 0
  const late = new LateSync(log, 5000, (sync) => {
    sync()
    count += 1
  })
  t.teardown(() => late[Symbol.dispose]())
  return { late, syncs: () => count }
}

void t.test('commits that wait for no disk are synced together, and when others come', (t) => {
  const { late, syncs } = onClock(t)
  for (let i = 0; i < 5; i++) {
    late.committed()
    t.equal(syncs(), 0)
    mock.timers.tick(1000)
  }
  t.equal(syncs(), 1)
  mock.timers.tick(60_000)
  t.equal(syncs(), 1, 'nothing while nothing is written')
  late.committed()
  mock.timers.tick(5000)
  t.equal(syncs(), 2)
  t.end()
})

void t.test('changes that a later commit has synced are not synced again', (t) => {
  const { late, syncs } = onClock(t)
  late.committed()
  mock.timers.tick(4000)
  late.synced()
  mock.timers.tick(1000)
  t.equal(syncs(), 0)
  late.committed()
  mock.timers.tick(4999)
  t.equal(syncs(), 0, 'its time begins with what is not synced')
  mock.timers.tick(1)
  t.equal(syncs(), 1)
  t.end()
})

void t.test('a change is synced soon, though nothing follows it, and counted', async (t) => {
  await using store = await open(rootFolder(t), { syncWithinMs: soon })
  await replace(store, collection(), head(500), pods(3, 1))
  const { syncs } = store.diskWork
  await store.apply(collection(), [changed('MODIFIED', object('pod-0001', 900))])
  await until('a sync', () => store.diskWork.syncs > syncs)
  t.equal(store.diskWork.syncs, syncs + 1)
})

void t.test('a log that a crash has left is synced without another write', async (t) => {
  const [before, after] = [t.testdir({ left: {}, found: {} })].flatMap((all) => [
    join(all, 'left'),
    join(all, 'found'),
  ]) as [string, string]
  await using crashed = await open(before, { syncWithinMs: 1e9 })
  await replace(crashed, collection(), head(500), pods(3, 1))
  await crashed.put(keyOf('a'), pod, object('a', 600))
  cpSync(before, after, { recursive: true })
  const log = `${fileOf(after)}-wal`
  t.ok(statSync(log).size > 0)
  await using found = await open(after, { syncWithinMs: soon })
  await until('the log to be emptied', () => statSync(log).size === 0)
  t.equal(got(found, keyOf('a')), 'a at 600')
})
