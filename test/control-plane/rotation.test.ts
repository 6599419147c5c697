import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'
import { link } from '../kit/wire/link.ts'
import { joinFlags, requestersOf, startJoinablePlane } from './joinable-plane.ts'

t.setTimeout(300_000)

const skip =
  noControlPlane() ?? (process.getuid?.() === 0 ? false : 'only root is the node to its hub')

void t.test(
  'certificates of a minute are renewed through outages and kills, and replaced once expired',
  { skip, timeout: 300_000 },
  async (t) => {
    // Signed five minutes back: due within 24 seconds, and expired after 60.
    const plane = await startJoinablePlane(t, '--cluster-signing-duration=60s')
    await plane.admin.post('/api/v1/nodes', { metadata: { name: 'edge-1' } })
    const way = await link(t, Number(new URL(plane.url).port))
    const hub = await startHubProcess(plane.workspace, {
      servers: [`https://127.0.0.1:${way.port}`],
      nodeName: 'edge-1',
      until: 'alive',
      flags: ['--bootstrap-mode=token', ...joinFlags(plane)],
    })
    const file = plane.workspace.file('hub', 'pki', 'nodehub-client-current.pem')
    const read = async () => {
      const headers = { 'User-Agent': 'kubelet/v1.36.0' }
      const answer = await fetch(`${hub.url}/api/v1/nodes/edge-1`, { headers })
      await answer.arrayBuffer()
      return { status: answer.status, fromCache: answer.headers.has('age') }
    }
    const online = (): Promise<unknown> =>
      until('an answer of the API server', async () => {
        const { status, fromCache } = await read()
        return status === 200 && !fromCache
      })
    /** Takes the link down while no request waits, whose certificate would be fetched later. */
    const cut = (): Promise<unknown> =>
      until('no request to be under way', () => {
        if (existsSync(plane.workspace.file('hub', 'pki', 'nodehub-client.key.tmp'))) return false
        way.down()
        return true
      })
    const offline = { status: 200, fromCache: true }
    const killed = async (): Promise<void> => {
      await hub.daemon.kill()
      await hub.daemon.start()
    }
    const renewed = (before: string): Promise<unknown> =>
      until('another certificate', () => readFileSync(file, 'utf8') !== before)

    await online()
    await cut()
    const first = readFileSync(file, 'utf8')
    await killed()

    await t.test('a certificate due is renewed once the link is back', async (t) => {
      t.strictSame(await read(), offline)
      t.equal(readFileSync(file, 'utf8'), first, 'a kill leaves the pair')
      way.up()
      await renewed(first)
      await online()
    })

    await t.test('an expired one lets the hub serve the node from its cache', async (t) => {
      await cut()
      const last = readFileSync(file, 'utf8')
      const { validToDate } = new X509Certificate(last)
      await until('its end', () => Date.now() > validToDate.getTime(), { seconds: 90 })
      t.strictSame(await read(), offline)
      await killed()
      t.strictSame(await read(), offline, 'also after a kill')
      t.equal(readFileSync(file, 'utf8'), last)
      const byToken = async (): Promise<number> =>
        (await requestersOf(plane)).filter((each) => each === 'system:bootstrap:abcdef').length
      const before = await byToken()
      way.up()
      await renewed(last)
      // The next requests, for this and for the serving certificate, are the node's own.
      t.ok((await byToken()) > before, 'by the token')
      await online()
    })
  },
)
