import { createServer } from 'node:net'
import t from 'tap'
import { canonical, describeListener, socketsAt } from '../../src/base/listening-sockets.ts'
import { portOf } from '../kit/wire/listening.ts'

const skip = process.platform !== 'linux' && 'no /proc here'

void t.test('an address has one form', async (t) => {
  t.equal(canonical('0:0:0:0:0:0:0:1'), '::1')
  t.equal(canonical('127.0.0.1'), '127.0.0.1')
  t.equal(canonical('FE80::0:1%eth0'), 'fe80::1%eth0')
})

void t.test('a socket blocks every address that it covers', { skip }, async (t) => {
  for (const [address, inTheWayOf, not] of [
    ['127.0.0.1', ['127.0.0.1', '0.0.0.0', '::'], ['127.0.0.2', '::1']],
    ['0.0.0.0', ['127.0.0.1', '0.0.0.0', '::'], ['::1']],
    ['::1', ['::1', '::'], ['127.0.0.1', '0.0.0.0']],
    ['::', ['::1', '127.0.0.1', '0.0.0.0', '::'], []],
  ] as const) {
    const port = await portOf(t, createServer(), address)
    const own = process.getuid?.()
    for (const other of inTheWayOf)
      t.match(socketsAt({ address: other, port }), [{ address, port, uid: own }], other)
    for (const other of not) t.strictSame(socketsAt({ address: other, port }), [], other)
  }
})

void t.test('a listener is named by program, process and user', { skip }, async (t) => {
  const port = await portOf(t, createServer(), '::1')
  const [socket] = socketsAt({ address: '::1', port })
  if (!socket) throw new Error('it is not seen')
  const uid = process.getuid?.()
  t.equal(
    describeListener(socket),
    `"${process.execPath}" (process ${process.pid}, uid ${uid}) listens at [::1]:${port}`,
  )
  t.equal(
    describeListener({ ...socket, inode: '0', uid: 4711 }),
    `a process of uid 4711 that is not seen from here (inode 0) listens at [::1]:${port}`,
  )
})
