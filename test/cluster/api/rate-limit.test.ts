import t from 'tap'
import { keepProcessAlive, turn } from '../../../src/base/clock.ts'
import { RateLimit } from '../../../src/cluster/api/rate-limit.ts'

void t.test('beyond the burst a request waits, until its caller gives up', async (t) => {
  // One in a quarter of an hour: none comes back while the test runs.
  const limit = new RateLimit(0.001, 2)
  await limit.take()
  await limit.take()
  const stop = new AbortController()
  let taken = false
  const third = limit.take(stop.signal).then(() => {
    taken = true
  })
  await turn()
  t.notOk(taken)
  stop.abort()
  await third
})

void t.test('what was taken comes back with time', async (t) => {
  using _alive = keepProcessAlive()
  const limit = new RateLimit(1000, 1)
  for (let taken = 0; taken < 20; taken++) await limit.take()
  t.pass('twenty of them, one of which was there')
})
