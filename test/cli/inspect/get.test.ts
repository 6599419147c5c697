import t from 'tap'
import { readFileSync } from 'node:fs'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { secrets, service, services } from '../../kit/cloud.ts'
import { goOffline, startCloud, startTestHub, type TestHub, onlineNode } from '../../kit/hub.ts'
import { requestAs } from '../../kit/other-user.ts'
import { reachable } from '../../kit/reachable.ts'
import { said, type Said } from '../../kit/terminal.ts'

const skip =
  process.platform === 'linux' && process.getuid?.() === 0 ? false : 'only root is shown content'

const run = ({ hub }: TestHub, ...argv: string[]): Promise<Said> =>
  said((terminal) => inspect.run([...argv, `--serve-port=${hub.opsPort}`], terminal))

void t.test('an object is shown as stored, and as filtered per component', { skip }, async (t) => {
  const cloud = await startCloud(t)
  cloud.sandbox.create(services, service('kubernetes', '10.96.0.1'))
  cloud.sandbox.create(
    services,
    service('x-tunnel-server-internal-svc', '10.96.0.2', 'kube-system'),
  )
  const hub = await startTestHub(t, { upstreams: [cloud], ...(await reachable(t)) })
  await hub.online()
  await hub.as('kubelet').list('/api/v1/services')
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  cloud.sandbox.create(
    { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' },
    {
      metadata: { name: 'edge-1', namespace: 'kube-node-lease' },
      spec: { holderIdentity: 'edge-1' },
    },
  )
  await hub.as('kubelet').list(leases)
  await goOffline(cloud, hub)

  const { code, out } = await run(hub, 'get', 'svc/kubernetes')
  t.equal(code, 0)
  t.match(out, /^node +\d+ +20\S+Z +\S*JSON/m)
  t.match(out, /^kubelet +edited +masterservice \(edited\)$/m)
  t.match(out, /^kube-proxy +not yet: filters wait for pool$/m)
  t.match(out, /^-  clusterIP: 10\.96\.0\.1$/m)
  t.match(out, /^\+ {2}clusterIP: /m)
  const tunnel = 'services/x-tunnel-server-internal-svc'
  const hidden = await run(hub, 'get', tunnel, '-n', 'kube-system', '-o', 'json')
  t.match(JSON.parse(hidden.out), {
    resource: 'services',
    shown: [
      {
        component: 'kube-proxy',
        as: 'withheld',
        decisions: [{ filter: 'discardcloudservice', decision: 'withheld' }],
      },
    ],
  })
  t.equal(
    await hub.metric(
      'nodehub_filter_decisions_total{filter="discardcloudservice",result="withheld"}',
    ),
    0,
    'looking is no decision',
  )
  const none = await run(hub, 'get', 'pod/none')
  t.match(none, { code: 1, out: 'No component of this node has read pods default/none.' })
  t.match(
    (await run(hub, 'get', 'lease/edge-1', '-n', 'kube-node-lease')).out,
    /^ {2}holderIdentity/m,
  )
  t.match(await run(hub, 'get', 'widget/a'), { code: 2, err: /404 no component .* this kind/ })
  t.match(await run(hub, 'get', 'pod'), { code: 2, err: 'KIND/NAME' })
})

void t.test('values of a Secret and last-applied are not shown', { skip }, async (t) => {
  const cloud = await startCloud(t)
  const planted = 'planted-password'
  const data = { password: Buffer.from(planted).toString('base64') }
  const applied = JSON.stringify({ data })
  cloud.sandbox.create(secrets, {
    metadata: {
      name: 'db',
      namespace: 'default',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': applied },
    },
    data,
  })
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  await hub.as('kubelet').get('/api/v1/namespaces/default/secrets/db')
  for (const format of ['table', 'json', 'yaml']) {
    const { code, out } = await run(hub, 'get', 'secret/db', '-o', format)
    t.equal(code, 0)
    t.match(out, /password"?: "?\(16 bytes\)/)
    t.notMatch(out, data.password)
    t.notMatch(out, planted)
  }
})

void t.test('only root sees content, not holders of the token', { skip }, async (t) => {
  const { hub } = await onlineNode(t, 'a')
  await hub.as('kubelet').get('/api/v1/namespaces/default/pods/a')
  const url = `http://127.0.0.1:${hub.hub.opsPort}/inspect/get?kind=pod&name=a&namespace=default`
  const token = await hub.ops.get('/inspect/status')
  t.equal(token.status, 200)
  const [other] = await requestAs(65_534, [{ url, headers: {} }])
  t.equal(other?.status, 403)
  const headers = { Authorization: `Bearer ${readFileSync(hub.inspectTokenFile, 'utf8')}` }
  const [holder] = await requestAs(65_534, [{ url, headers }])
  t.match(holder, { status: 403, body: /for root of this node alone/ })
})
