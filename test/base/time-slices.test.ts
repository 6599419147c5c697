import t from 'tap'
import { TimeSlices } from '../../src/base/time-slices.ts'
import { blockEventLoop } from '../kit/block-event-loop.ts'

/** How many turns of the event loop began while `work` was under way. */
async function turnsDuring(work: () => Promise<void>): Promise<number> {
  let turns = 0
  let over = false
  const next = (): void => {
    if (over) return
    turns++
    setImmediate(next)
  }
  setImmediate(next)
  await work()
  over = true
  return turns
}

void t.test('waiting tasks run between slices', async (t) => {
  const turns = await turnsDuring(async () => {
    const slices = new TimeSlices()
    for (let step = 0; step < 3; step++) {
      blockEventLoop(6)
      await slices.pause()
    }
  })
  t.ok(turns >= 3)
})
