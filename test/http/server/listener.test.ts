import t from 'tap'
import { scriptedReply, get, startListener, upgrading } from '../../kit/listener.ts'

void t.test(
  'streams, tunnels and silent clients that outlast the grace period are cut',
  async (t) => {
    const { dial, listener } = await startListener(t, async ({ upgrade }) =>
      upgrade
        ? { kind: 'upgrade', from: 'cloud', take: (socket) => void socket.write('taken') }
        : scriptedReply(() => undefined),
    )
    const watch = await dial()
    await watch.write(get()).head()
    const tunnel = await dial()
    await tunnel.write(upgrading).until('taken')
    const silent = await dial()
    const half = await dial()
    half.write('GET / HTTP/1.1\r\nHost')
    await listener.close(20)
    await t.resolves(Promise.all([watch, tunnel, silent, half].map(({ ended }) => ended)))
  },
)
