import t from 'tap'
import { listen } from '../../../src/http/server/listener.ts'
import { scriptedReply, get, wholeReply, startListener, upgrading } from '../../kit/listener.ts'
import { until } from '../../kit/until.ts'

void t.test('a port that is taken is an error', async (t) => {
  const { listener } = await startListener(t, async () => wholeReply('ok'))
  await t.rejects(
    listen({
      at: [{ host: '127.0.0.1', port: listener.port }],
      handler: async () => wholeReply('ok'),
      maxConnections: 1,
      onBroken: () => undefined,
    }),
    { code: 'EADDRINUSE' },
  )
})

void t.test('closing lets what is under way finish, and takes nothing new', async (t) => {
  let finish: (() => void) | undefined
  const { dial, listener } = await startListener(t, async ({ url }) => {
    if (url === '/slow') await new Promise<void>((resolve) => (finish = resolve))
    return wholeReply(url)
  })
  const idle = await dial()
  await idle.write(get('/idle')).answer()
  const busy = await dial()
  busy.write(get('/slow'))
  await until('the request', () => finish !== undefined)
  const closed = listener.close(1_000_000)
  await idle.ended
  await t.rejects(dial(), { code: 'ECONNREFUSED' })
  finish?.()
  t.equal((await busy.answer()).body, '/slow')
  await busy.ended
  busy.destroy()
  await closed
})

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
