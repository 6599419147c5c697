import t from 'tap'
import { fuzz } from './run.ts'
import { upstreamTarget } from './targets/upstream.ts'

void t.test('for any upstream bytes, no truncated answer looks complete to a client', async (t) => {
  const { taken, growth } = await fuzz(upstreamTarget, 1, (round) => round < 2)
  t.ok(taken > 0, 'some of it is taken')
  t.ok(growth < 32 * 1024 * 1024, `${growth} bytes are kept of what is over`)
})
