import t from 'tap'
import { ownRequest } from '../../../src/http/exchange/own-request.ts'
import { nodeIdentity } from '../../../src/api/request/identity.ts'

const { signal } = new AbortController()
const asNode = { identity: nodeIdentity, credential: 'node', signal } as const

void t.test(
  'the hub’s own requests name nodehub as their User-Agent, whatever their component',
  async (t) => {
    const own = ownRequest({ ...asNode, method: 'GET', url: '/api/v1/pods', accept: '*/*' })
    t.equal(own.component, 'nodehub')
    const kubelets = ownRequest({
      ...asNode,
      method: 'GET',
      url: '/api/v1/nodes/a',
      accept: 'application/vnd.kubernetes.protobuf,application/json',
      component: 'kubelet',
      gzip: true,
    })
    t.equal(kubelets.component, 'kubelet')
    t.match(kubelets.headers.get('user-agent'), /^nodehub\/v\d/)
    t.equal(kubelets.headers.get('accept-encoding'), 'gzip')
    t.strictSame(
      kubelets.representations.map(({ key }) => key),
      ['protobuf', 'json'],
    )
    t.match(kubelets.info, { verb: 'get', gvr: { resource: 'nodes' }, name: 'a' })
    t.not(own.id, kubelets.id)
  },
)
