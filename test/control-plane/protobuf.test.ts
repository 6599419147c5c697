import t from 'tap'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { startTestHub } from '../kit/hub.ts'
import { lives } from '../scenarios/protobuf-life.ts'

void t.test(
  'F24: protobuf passes both ways between a client and a real API server',
  { skip: noControlPlane() ?? false, timeout: 60_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const flags = [`--kubeconfig=${plane.kubeconfig(administrator)}`]
    await lives(t, await startTestHub(t, { upstreams: [plane], flags }))
  },
)
