import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { restartUnit, systemdSocket } from '../../../src/node/join/unit-restart.ts'
import { startSystemdSocket } from '../../kit/systemd-socket.ts'

/** The path of a socket is short. */
const folder = (): string => {
  const made = mkdtempSync('/tmp/nodehub-')
  t.teardown(() => rmSync(made, { recursive: true, force: true }))
  return made
}

void t.test('a unit is restarted, and the end of its job is awaited', async (t) => {
  const root = folder()
  const systemd = await startSystemdSocket(t, root)
  const path = join(root, systemdSocket)
  t.equal(await restartUnit(path, 'kubelet.service'), undefined)
  t.strictSame(systemd.restarted, ['kubelet.service'])
  systemd.result = 'failed'
  t.equal(await restartUnit(path, 'kubelet.service'), 'the job ended: failed')
  systemd.result = 'unknown'
  t.equal(await restartUnit(path, 'kubelet.service'), 'Unit kubelet.service not found.')
})

void t.test('a failure of systemd is returned as the reason', async (t) => {
  const path = join(folder(), 'socket')
  t.match(await restartUnit(path, 'kubelet.service'), /ENOENT/)
  let says = 'REJECTED EXTERNAL\r\n'
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(says)
  })
  t.teardown(() => server.close())
  server.listen(path)
  await once(server, 'listening')
  t.match(await restartUnit(path, 'kubelet.service'), /REJECTED EXTERNAL|EPIPE|ECONNRESET/)
  says = ''
  t.match(await restartUnit(path, 'kubelet.service'), /closed the connection|EPIPE|ECONNRESET/)
})
