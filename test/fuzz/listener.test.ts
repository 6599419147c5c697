import t from 'tap'
import { fuzz } from './run.ts'
import { listenerTarget } from './targets/listener.ts'

void t.test('for any bytes of a client there is no request smuggling and no leak', async (t) => {
  const { taken, growth } = await fuzz(listenerTarget, 1, (round) => round < 500)
  t.ok(taken > 0, 'some of it is taken')
  t.ok(growth < 8 * 1024 * 1024, `${growth} bytes are kept of what is over`)
})
