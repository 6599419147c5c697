import t from 'tap'
import { podsOfNode } from '../kit/cloud.ts'
import { onlineNode, goOffline } from '../kit/hub.ts'

const podsAge = 'nodehub_cache_age_seconds{resource="pods"}'
const podA = '/api/v1/namespaces/default/pods/a'

void t.test('an answer of the cache says since when the cloud has not confirmed it', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const [kubelet, kubectl] = [hub.as('kubelet'), hub.as('kubectl')]
  const paths = [podsOfNode, podA, '/api/v1']
  const before = Date.now()
  for (const path of paths) {
    const { headers } = await kubectl.get(path)
    t.strictSame([headers.age, headers['warning']], [undefined, undefined], 'the cloud says it')
  }
  const after = Date.now()
  await goOffline(cloud, hub)
  for (const path of paths) {
    const { headers } = await kubelet.get(path)
    t.match(headers.age, /^[0-9]+$/, path)
    t.equal(headers['warning'], undefined, 'a kubelet would only log it')
  }
  for (const path of [...paths, `${podsOfNode}&watch=true&timeoutSeconds=1`]) {
    const { headers } = await kubectl.get(path)
    t.match(headers.age, /^[0-9]+$/, path)
    const warning = headers['warning'] as string | undefined
    if (path === '/api/v1') {
      t.equal(warning, undefined, 'kubectl reads discovery before anything else')
      continue
    }
    const since = /^299 - ".* since ([^\s";]+)/.exec(warning ?? '')?.[1] ?? ''
    const at = new Date(since).getTime()
    t.ok(at >= Math.floor(before / 1000) * 1000 && at <= after, `${path}: ${warning}`)
  }
})

void t.test('metrics show since when the hub is offline, and how old its cache is', async (t) => {
  const { cloud, hub } = await onlineNode(t, 'a')
  const before = Date.now()
  await hub.as('kubelet').list('/api/v1/services')
  await hub.as('kubelet').list(podsOfNode)
  await hub.as('kubelet').list('/api/v1/namespaces/default/pods')
  t.equal(await hub.metric('nodehub_offline_since_timestamp_seconds'), 0)
  t.notMatch(await hub.readyz(), /longest unconfirmed/)
  await goOffline(cloud, hub)
  const since = (await hub.metric('nodehub_offline_since_timestamp_seconds')) * 1000
  t.ok(since >= before && since <= Date.now())
  const age = (await hub.metric(podsAge)) * 1000
  t.ok(age > 0 && age <= Date.now() - before)
  t.match(
    await hub.readyz(),
    /\[ \]cache longest unconfirmed: services since \S+Z, pods since \S+Z\n/,
  )
})
