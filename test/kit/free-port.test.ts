import { mock } from 'node:test'
import t from 'tap'
import { freePort } from './free-port.ts'

void t.test('a port is handed out once, though nothing listens on it', async (t) => {
  const first = await freePort()
  const drawn = [(first - 12_000) / 17_000 + 1e-9, Math.random()]
  const random = mock.method(Math, 'random', () => drawn.shift() ?? 0.5)
  t.teardown(() => random.mock.restore())
  t.not(await freePort(), first)
  t.equal(drawn.length, 0, 'the first was drawn again')
})
