import { connect, type ClientHttp2Session } from 'node:http2'
import t from 'tap'
import { podsOfNode, startCloud, type CloudServer } from '../kit/cloud.ts'
import { goOffline, startTestHub, type TestHub } from '../kit/hub.ts'
import { openStream } from '../kit/http2.ts'

/** The kubelet's one connection, with the certificate that the API servers' authority gave it. */
function kubeletAt(t: Tap, hub: TestHub, cloud: CloudServer): ClientHttp2Session {
  const shown = cloud.node
  const session = connect(hub.secureUrl, { ca: hub.ca, cert: shown.certificate, key: shown.key })
  t.teardown(() => session.destroy())
  return session
}

interface Tap {
  teardown(act: () => unknown): void
}

const asking = (path: string) => ({
  ':path': path,
  'user-agent': 'kubelet/v1.35.0 (linux/amd64)',
  accept: 'application/json',
})

const watching = asking(`${podsOfNode}&watch=true&resourceVersion=0`)

void t.test(
  'over HTTP/2 a watch ends cleanly when the hub stops, and its connection',
  async (t) => {
    const cloud = await startCloud(t, { tls: true })
    cloud.addPods('a')
    const hub = await startTestHub(t, { upstreams: [cloud] })
    await hub.online()
    const session = kubeletAt(t, hub, cloud)
    const watch = openStream(session, watching)
    t.equal((await watch.head())[':status'], 200)
    const closed = new Promise<void>((resolve) => session.once('close', () => resolve()))
    const [answer] = await Promise.all([watch.whole(), hub.stop()])
    t.match(answer.body, /"type":"ADDED"/)
    await closed
  },
)

void t.test('over HTTP/2 a watch of the cache goes on when the cloud is back', async (t) => {
  const cloud = await startCloud(t, { tls: true })
  cloud.addPods('a')
  const hub = await startTestHub(t, { upstreams: [cloud] })
  await hub.online()
  const session = kubeletAt(t, hub, cloud)
  const list = await openStream(session, asking(podsOfNode)).whole()
  t.equal(list.status, 200)
  await goOffline(cloud, hub)
  t.equal((await openStream(session, asking(podsOfNode)).whole()).body, list.body)
  const watch = openStream(session, watching)
  t.equal((await watch.head())[':status'], 200)
  cloud.addPods('b')
  await cloud.plug()
  t.ok(await watch.until('"name":"b"'))
})
