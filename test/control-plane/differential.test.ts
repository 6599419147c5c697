import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  administrator,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../kit/control-plane.ts'
import { nodeName } from '../kit/cloud.ts'
import { startTestHub } from '../kit/hub.ts'
import { compareAll } from '../differential/check.ts'
import { differences } from '../differential/differences.ts'
import { clientsOf, patientHeartbeat } from '../differential/clients.ts'
import { prepare } from '../differential/fixtures.ts'

t.setTimeout(240_000)

const skip = noControlPlane() ?? false

void t.test(
  'a hub answers as the API server behind it, but for documented differences',
  { skip, timeout: 240_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const hub = await startTestHub(t, {
      upstreams: [plane],
      flags: [`--kubeconfig=${plane.kubeconfig(administrator)}`],
      config: { heartbeat: patientHeartbeat },
    })
    const [admin, node] = [administrator, nodeSubject(nodeName)].map((subject) => {
      const { certificate, key } = plane.credentials(subject)
      return { cert: readFileSync(certificate), key: readFileSync(key) }
    })
    if (!admin || !node) throw new Error('there are two')
    const tls = { ca: readFileSync(plane.pki.ca.certificate), ...admin }
    const clients = clientsOf(t, { hub, url: plane.url, tls, node })
    const token = await prepare(clients)
    const found = await compareAll(t, {
      sort: 'kube-apiserver',
      clients,
      token,
      compact: () => plane.compact(),
    })
    t.strictSame(found.differences, new Set(differences), 'none is out of date')
    const missing = refusals.filter((code) => !found.codes.has(code))
    t.strictSame(missing, [], 'every kind of answer was seen')
  },
)

const refusals = [
  200, 201, 304, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 417, 422, 429, 500, 501, 504,
  505,
]
