import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { startHubProcess, type HubProcess } from '../kit/cluster/hub-process.ts'
import { noControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'
import { joinFlags, requestersOf, startJoinablePlane } from './joinable-plane.ts'

t.setTimeout(600_000)

const skip =
  noControlPlane() ?? (process.getuid?.() === 0 ? false : 'only root is the node to its hub')

const readyz = async ({ opsUrl }: HubProcess) => {
  const answer = await fetch(`${opsUrl}/readyz?verbose`)
  return { status: answer.status, text: await answer.text() }
}

/** Ready, and online: with a certificate it is ready before a probe has found the API server. */
const isOnline = (hub: HubProcess): Promise<unknown> =>
  until(
    'the hub to be ready, and online',
    async () => {
      const { status, text } = await readyz(hub)
      return status === 200 && text.includes('[+]cloud online')
    },
    { seconds: 120 },
  )

void t.test('a hub joins a real cluster with a token alone', { skip }, async (t) => {
  // Signed five minutes back: seven minutes of life, of which 70 to 90 % have passed within two.
  const plane = await startJoinablePlane(t, '--cluster-signing-duration=2m')
  const { admin, workspace } = plane
  const ca = readFileSync(plane.pki.ca.certificate, 'utf8')
  const start = (nodeName: string, by: Parameters<typeof joinFlags>[1] = {}) =>
    startHubProcess(workspace, {
      servers: [plane.url],
      nodeName,
      folder: nodeName,
      until: 'alive',
      flags: ['--bootstrap-mode=token', ...joinFlags(plane, by)],
    })
  const pairOf = (nodeName: string): string =>
    workspace.file(nodeName, 'pki', 'nodehub-client-current.pem')
  await admin.post('/api/v1/nodes', { metadata: { name: 'edge-1' } })

  await t.test('it reads as its node', async (t) => {
    const hub = await start('edge-1')
    await isOnline(hub)
    const node = await fetch(`${hub.url}/api/v1/nodes/edge-1`)
    t.equal(node.status, 200)
    t.ok((await requestersOf(plane)).includes('system:bootstrap:abcdef'))

    const first = readFileSync(pairOf('edge-1'), 'utf8')
    await until(
      'the certificate to be rotated',
      async () => readFileSync(pairOf('edge-1'), 'utf8') !== first,
      { seconds: 240 },
    )
    t.ok((await requestersOf(plane)).includes('system:node:edge-1'), 'with itself')
    t.equal((await fetch(`${hub.url}/api/v1/nodes/edge-1`)).status, 200)

    await hub.daemon.kill()
    const authority = CertificateAuthority.from('test-ca', {
      certificate: ca,
      key: readFileSync(plane.pki.ca.key, 'utf8'),
    })
    const expired = await authority.issue({
      commonName: 'system:node:edge-1',
      organizations: ['system:nodes'],
      usage: 'client',
      lifetimeMs: -1_000,
    })
    writeFileSync(pairOf('edge-1'), expired.certificate + expired.key)
    await hub.daemon.start()
    await until('another certificate', async () => {
      const leaf = new X509Certificate(readFileSync(pairOf('edge-1'), 'utf8'))
      return leaf.validToDate.getTime() > Date.now()
    })
    await isOnline(hub)
    t.equal((await fetch(`${hub.url}/api/v1/nodes/edge-1`)).status, 200, 'once it had expired')
    await hub.daemon.kill()
  })
})
