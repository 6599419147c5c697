import t from 'tap'
import { fuzz } from './run.ts'
import { http2Target } from './targets/http2.ts'

void t.test(
  'with any HTTP/2 frames, exchanges end with their client and others are answered',
  async (t) => {
    const { taken, growth } = await fuzz(http2Target, 1, (round) => round < 240)
    t.ok(taken > 0, 'some of it is taken')
    t.ok(growth < 8 * 1024 * 1024, `${growth} bytes are kept of what is over`)
  },
)
