import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import t from 'tap'
import { CertificateAuthority } from '../../../src/certificates/authority.ts'
import { intermediateAuthority } from '../../kit/certificates.ts'
import { portOf } from '../../kit/wire/listening.ts'
import { hubIsReady } from '../../../src/node/join/kubelet-service.ts'

void t.test('a hub is ready if /readyz is and its certificate is trusted', async (t) => {
  const hubs = await CertificateAuthority.create('hub')
  const { certificate, key } = await hubs.issue({
    commonName: 'hub',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  let status = 200
  const ops = await portOf(
    t,
    createServer((_request, response) => response.writeHead(status).end()),
  )
  const server = createTlsServer({ cert: certificate, key })
  const secure = await portOf(t, server)
  const ports = { proxy: 1, secure, ops }
  const ca = hubs.certificate
  t.equal(await hubIsReady({ ports, ca }, 0), true)
  const strangers = (await CertificateAuthority.create('stranger')).certificate
  t.equal(await hubIsReady({ ports, ca: strangers }, 0), false, 'another program has the port')
  t.equal(await hubIsReady({ ports: { ...ports, secure: ops }, ca }, 0), false)
  status = 503
  t.equal(await hubIsReady({ ports, ca }, 0), false)
  status = 200
  const signer = await intermediateAuthority()
  const signed = await signer.issue({
    commonName: 'hub',
    usage: 'server',
    ipAddresses: ['127.0.0.1'],
  })
  server.setSecureContext({ cert: signed.certificate, key: signed.key })
  const both = ca + signer.certificate
  t.equal(await hubIsReady({ ports, ca: both }, 0), true, 'signed by an intermediate of the file')
})
