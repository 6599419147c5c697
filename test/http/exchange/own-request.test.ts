import t from 'tap'
import { ownRequest } from '../../../src/http/exchange/own-request.ts'
import { nodeIdentity, tokenHolder } from '../../../src/api/request/identity.ts'

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

void t.test('a request on behalf of a caller has its token as credential', async (t) => {
  const bytes = Buffer.from('{"ä":1}')
  const asked = ownRequest({
    identity: tokenHolder('one'),
    credential: 'caller',
    authorization: 'Bearer a.b.c',
    method: 'POST',
    url: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    accept: 'application/json',
    content: { type: 'application/json', bytes },
    signal,
  })
  t.equal(asked.credential, 'caller')
  t.equal(asked.headers.get('authorization'), 'Bearer a.b.c')
  t.equal(asked.headers.get('content-length'), '8')
  t.equal(asked.content, bytes)
  t.equal(
    ownRequest({ ...asNode, method: 'GET', url: '/', accept: '*/*' }).headers.get('authorization'),
    undefined,
  )
})
