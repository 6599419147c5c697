import t from 'tap'
import { Snapshots } from '../../../../src/hub/store/sqlite/snapshots.ts'

void t.test('where too much is kept for readers, the slowest loses its snapshot', async (t) => {
  const snapshots = new Snapshots()
  const slow = snapshots.read()
  snapshots.committed(5, 10)
  const quick = snapshots.read()
  snapshots.committed(9, 20_000)
  t.strictSame([slow.valid, quick.valid, snapshots.sweepable()], [true, true, 0])
  snapshots.committed(10, 20_001)
  t.strictSame([slow.valid, quick.valid, snapshots.sweepable()], [false, true, 5])
  snapshots.committed(11, 20_001)
  t.strictSame([quick.valid, snapshots.sweepable()], [false, 11])
})

void t.test('a restarted writer invalidates all snapshots', async (t) => {
  const snapshots = new Snapshots()
  const before = snapshots.read()
  snapshots.committed(3, 0)
  const after = snapshots.read()
  snapshots.restart()
  t.strictSame([before.valid, after.valid, snapshots.sweepable()], [false, false, 0])
})
