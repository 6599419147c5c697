import t from 'tap'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { passedSockets } from '../../src/config/listen-fds.ts'
import { listeningFd } from '../kit/listening-fd.ts'

const somewhere = { address: '127.0.0.1', port: 1 }
const read = (env: Record<string, string>) => passedSockets(env, 7, () => somewhere)

void t.test('sockets are passed from file descriptor 3 on', async (t) => {
  t.strictSame(read({ LISTEN_PID: '7', LISTEN_FDS: '2' }), [
    { fd: 3, at: somewhere },
    { fd: 4, at: somewhere },
  ])
})

void t.test('sockets that were passed to another process are left alone', async (t) => {
  t.strictSame(read({}), [])
  t.strictSame(read({ LISTEN_FDS: '1' }), [])
  t.strictSame(read({ LISTEN_PID: '5', LISTEN_FDS: '1' }), [])
  for (const count of ['', '0', '-1', 'two', '65', '1e9'])
    t.strictSame(read({ LISTEN_PID: '7', LISTEN_FDS: count }), [], count)
})

void t.test(
  'a passed socket’s address is read before listening on it',
  { skip: process.platform !== 'linux' && 'no /proc here' },
  async (t) => {
    const child = join(import.meta.dirname, 'say-passed.ts')
    for (const address of ['127.0.0.1', '::1']) {
      const server = createServer().listen(0, address)
      t.teardown(() => server.close())
      await once(server, 'listening')
      const fd = listeningFd(server)
      const folder = openSync(import.meta.dirname, 'r')
      const asSystemd = 'LISTEN_PID=$$ exec "$0" "$1"'
      const { stdout } = spawnSync('sh', ['-c', asSystemd, process.execPath, child], {
        env: { ...process.env, LISTEN_FDS: '2' },
        stdio: ['ignore', 'pipe', 'inherit', fd, folder],
      })
      const said = JSON.parse(stdout.toString()) as readonly { at?: { address: string } }[]
      const { port } = server.address() as { port: number }
      t.match(said, [{ fd: 3, at: { address, port } }, { fd: 4 }])
      t.equal(said[1]?.at, undefined, 'a folder listens nowhere')
    }
  },
)
