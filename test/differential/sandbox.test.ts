import t from 'tap'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { CloudServer, nodeName } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { compareAll } from './check.ts'
import { clientsOf, patientHeartbeat } from './clients.ts'
import { prepare } from './fixtures.ts'

t.setTimeout(300_000)

void t.test('nobody can tell a hub from the sandbox behind it', { timeout: 300_000 }, async (t) => {
  const sandbox = await startSandbox({ freshnessMs: 100 })
  t.teardown(() => sandbox[Symbol.asyncDispose]())
  sandbox.authorize(
    ({ user, resource }) =>
      !user.name.startsWith('system:serviceaccount:') ||
      resource === undefined ||
      resource === 'selfsubjectreviews',
  )
  const node = await sandbox.clientCertificate(`system:node:${nodeName}`, ['system:nodes'])
  const hub = await startTestHub(t, {
    upstreams: [new CloudServer(sandbox, node)],
    config: { heartbeat: patientHeartbeat },
  })
  const client = { cert: node.certificate, key: node.key }
  const tls = { ca: sandbox.caCertificate ?? '', ...client }
  const clients = clientsOf(t, { hub, url: sandbox.url, tls, node: client })
  const token = await prepare(clients)
  await compareAll(t, { sort: 'sandbox', clients, token, compact: () => sandbox.compact() })
})
