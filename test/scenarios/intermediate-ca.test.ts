/**
 * A CA file that holds an intermediate alone: to Go's programs each certificate of the file is an
 * anchor, and so it is to the hub, whoever connects to whom.
 */
import t from 'tap'
import { nodeName, pods, pod, podsOfNode, startCloud } from '../kit/cloud.ts'
import { intermediateAuthority } from '../kit/certificates.ts'
import { startOnlineHub, goOffline, startTestHub } from '../kit/hub.ts'
import { startJoinable } from '../kit/joinable.ts'

t.setTimeout(60_000)

void t.test('a hub whose CA is an intermediate is online, and knows its kubelet', async (t) => {
  const cloud = await startCloud(t, { tls: true, authority: await intermediateAuthority() })
  cloud.addPods('web')
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags: ['--anonymous-loopback=none'] })
  const kubelet = hub.securelyAs('kubelet', cloud.node)
  t.equal((await kubelet.get(podsOfNode)).status, 200)
  const watch = await kubelet.watch(`${podsOfNode}&resourceVersion=${cloud.sandbox.version}`)
  cloud.sandbox.create(pods, pod('later'))
  t.match(await watch.next(), { type: 'ADDED', object: { metadata: { name: 'later' } } })
  const [leaf = ''] = cloud.node.certificate.split(/(?<=-----END CERTIFICATE-----\n)/)
  const alone = hub.securelyAs('kubelet', { certificate: leaf, key: cloud.node.key })
  t.equal((await alone.get(podsOfNode)).status, 200, 'without the chain')
  const other = await intermediateAuthority()
  const foreign = await other.issue({
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
    usage: 'client',
  })
  t.equal((await hub.securelyAs('kubelet', foreign).get(podsOfNode)).status, 401, 'of a namesake')
  await goOffline(cloud, hub)
  t.equal((await kubelet.get(podsOfNode)).status, 200, 'offline')
})

void t.test('a hub joins by the hash of an intermediate', async (t) => {
  const joinable = await startJoinable(t, await intermediateAuthority())
  const hub = await startTestHub(t, {
    upstreams: [],
    flags: [`--server-addr=${joinable.cloud.url}`, ...joinable.flags],
  })
  await hub.logged('the hub has obtained a client certificate')
  await hub.online()
  t.equal((await hub.as('kubelet').get(podsOfNode)).status, 200)
})
