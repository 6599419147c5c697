import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import { RateLimit } from '../../../src/cluster/api/api-server.ts'
import { setClock } from '../../kit/set-clock.ts'

/** One in a quarter of an hour: none comes back by itself while a test runs. */
const perSecond = 0.001
const oneMs = 1_000_000

/** Whether a request has to wait; its caller gives up then. */
async function waits(limit: RateLimit): Promise<boolean> {
  const stop = new AbortController()
  let taken = false
  const permission = limit.take(stop.signal).then(() => {
    taken = true
  })
  await turn()
  const waited = !taken
  stop.abort()
  await permission
  return waited
}

void t.test('beyond the burst a request waits, until its caller gives up', async (t) => {
  const limit = new RateLimit(perSecond, 2)
  t.notOk(await waits(limit))
  t.notOk(await waits(limit))
  t.ok(await waits(limit))
})

void t.test('tokens refill with time, up to the burst', async (t) => {
  const clock = setClock(t)
  const limit = new RateLimit(perSecond, 2)
  await limit.take()
  await limit.take()
  clock.forward(1.5 * oneMs)
  t.notOk(await waits(limit), 'one has come back')
  t.ok(await waits(limit), 'and no more than one, which this caller has waited for in vain')
  clock.forward(10 * oneMs)
  t.notOk(await waits(limit))
  t.notOk(await waits(limit))
  t.ok(await waits(limit), 'two at most are kept')
})
