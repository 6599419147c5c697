import t from 'tap'
import { Client } from '../kit/client.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { noControlPlane, nodeSubject, startControlPlane } from '../kit/control-plane.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false
const nodeName = 'edge-1'

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

const forged = [
  part({ alg: 'none' }),
  part({
    sub: 'system:serviceaccount:default:reader',
    'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'reader', uid: 'u-1' } },
  }),
  'AAAA',
].join('.')

void t.test(
  'a real API server’s 401 for a forged token reaches the client',
  { skip },
  async (t) => {
    const plane = await startControlPlane(t)
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
      nodeName,
    })
    const client = new Client({ url: hub.url, component: 'kubelet', token: forged })
    for (const connection of ['close', 'Authorization', 'close, authorization']) {
      const { status } = await client.send('/api/v1/namespaces/default/configmaps', {
        headers: { Connection: connection },
      })
      t.equal(status, 401, connection)
    }
  },
)
