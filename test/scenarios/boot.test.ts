import t from 'tap'
import { attachmentName } from '../../src/hub/boot/needs.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import type { SeenRequest } from '../../src/sandbox/requests.ts'
import {
  addCsiNode,
  addResourceClaims,
  attachments,
  claims,
  firstQuestions,
  kubeletOf,
  nodes,
  podWith,
  problemsIn,
  resourceClaims,
  startUp,
  verdictOf,
  verdictUntil,
  volumes,
} from '../kit/bootable.ts'
import { at, objectOf, withInitialEvents } from '../kit/client.ts'
import {
  configMaps,
  nodeName,
  pods,
  podsOfNode,
  secrets,
  serviceAccounts,
  identifiesCluster,
} from '../kit/cloud.ts'
import { ownVersion } from '../../src/base/own-version.ts'
import { hubReportIn } from '../../src/api/kube/hub-report.ts'
import {
  startOnlineHub,
  goOnline,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
  type TestHubOptions,
  onlineNodeWith,
} from '../kit/hub.ts'
import { setClock } from '../kit/set-clock.ts'
import { until } from '../kit/until.ts'
import type { Teardown } from '../kit/wire/wire.ts'

/** Asks again quickly, so that no test waits for minutes. */
const quick = (condition = false): NonNullable<TestHubOptions['config']> => ({
  boot: { refreshMs: 500, condition },
})
const never = { boot: { refreshMs: 0, condition: false } }

const byTheHub = ({ headers }: SeenRequest): boolean =>
  String(headers['user-agent']).startsWith('nodehub/')

const askedByTheHub = (cloud: CloudServer): string[] =>
  cloud.sandbox.requests
    .filter((each) => byTheHub(each) && !identifiesCluster(each))
    .map(({ url }) => url)

const secretSource = { secret: { secretName: 'password' } }
const claimSource = { persistentVolumeClaim: { claimName: 'data' } }
const secretPath = '/api/v1/namespaces/default/secrets'
const named = (name: string): string => `fieldSelector=metadata.name%3D${name}`

function addSecret(cloud: CloudServer): void {
  cloud.sandbox.create(secrets, {
    metadata: { name: 'password', namespace: 'default' },
    data: { password: Buffer.from('the-password-of-the-plant').toString('base64') },
  })
}

void t.test('a node whose kubelet has requested nothing would not come back', async (t) => {
  const { hub } = await onlineNodeWith(t, { config: never })
  t.equal((await verdictOf(hub)).ready, false)
  t.equal(await hub.metric('nodehub_boot_ready'), 0)
})

void t.test('a pod whose secret was never requested is named with it', async (t) => {
  const { cloud, hub } = await startedNode(t, never, (cloud) => {
    addSecret(cloud)
    cloud.sandbox.create(pods, podWith('press', secretSource))
  })
  const verdict = await verdictOf(hub)
  t.strictSame(problemsIn(verdict), ['press: missing secrets password'])
  t.equal(await hub.metric('nodehub_boot_pods_not_ready{reason="missing"}'), 1)
  const readyz = await hub.readyz()
  t.match(readyz, '[ ]boot 1 of 1 pods would not come back without a link')

  await kubeletOf(hub).get(`${secretPath}?${named('password')}&limit=500&resourceVersion=0`)
  await verdictUntil(hub, ({ ready }) => ready)
  t.equal(await hub.metric('nodehub_boot_ready'), 1)
  t.equal(await hub.metric('nodehub_boot_pods_not_ready{reason="missing"}'), 0)
  t.strictSame(askedByTheHub(cloud), [], 'as configured, the hub requests nothing')
})

/** A hub whose kubelet has sent its first requests, before a cloud that is filled so. */
async function startedNode(
  t: Teardown,
  config: NonNullable<TestHubOptions['config']> = never,
  fill: (cloud: CloudServer) => unknown = () => undefined,
): Promise<{ cloud: CloudServer; hub: TestHub }> {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  fill(cloud)
  const hub = await startTestHub(t, { upstreams: [cloud], config })
  await startUp(kubeletOf(hub))
  return { cloud, hub }
}

async function lastVerdictAt(hub: TestHub): Promise<string> {
  const { body } = await hub.ops.get('/inspect/status')
  return at(JSON.parse(body.toString()) as JsonObject, 'boot', 'at') as string
}

const slicesPath = '/apis/discovery.k8s.io/v1/endpointslices'

void t.test(
  'while a component is refused what it reads, the node would not come back',
  async (t) => {
    const { cloud, hub } = await startedNode(t)
    t.equal((await verdictOf(hub)).ready, true)
    await goOffline(cloud, hub)
    const proxy = hub.as('kube-proxy')
    t.equal((await proxy.get(slicesPath)).status, 503)
    const verdict = await verdictOf(hub)
    t.strictSame(problemsIn(verdict), ['node: refused endpointslices.discovery.k8s.io'])
    t.match(verdict.node.problems[0]?.message, /^kube-proxy /)
    t.equal(await hub.metric('nodehub_boot_ready'), 0)
    const { body } = await hub.hub.metrics.exposition()
    t.notMatch(body, 'nodehub_boot_pods_not_ready{reason="refused"}', 'no pod is concerned')
    const readyz = await hub.readyz()
    t.match(readyz, '[ ]boot the node would not come back without a link')

    await goOnline(cloud, hub)
    const { resourceVersion } = await proxy.list(`${slicesPath}?labelSelector=app`)
    t.ok(resourceVersion)
    t.equal((await verdictOf(hub)).ready, false, 'another list is not the one that was refused')
    const watch = await proxy.watch(slicesPath, withInitialEvents)
    t.equal(watch.status, 200)
    // A watch answers as a list does.
    await verdictUntil(hub, ({ ready }) => ready)
    watch.hangUp()
  },
)

void t.test(
  'what a person or an unrecorded program is refused is no part of the verdict',
  async (t) => {
    const { cloud, hub } = await startedNode(t)
    await goOffline(cloud, hub)
    for (const program of ['kubectl', 'curl']) {
      t.equal((await hub.as(program).get(slicesPath)).status, 503)
    }
    t.strictSame(problemsIn(await verdictOf(hub)), [])
  },
)

void t.test('a fresh hub warns of nothing before the kubelet has read anything', async (t) => {
  const clock = setClock(t)
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(pods, podWith('press', secretSource))
  const hub = await startOnlineHub(t, { upstreams: [cloud], config: never })
  const judged = async (): Promise<void> => {
    const before = Date.parse((await verdictOf(hub)).at)
    await until('the next millisecond', () => Date.now() > before)
    clock.forward(10_000)
    await until('a verdict', async () => Date.parse(await lastVerdictAt(hub)) > before)
  }
  const said = (level: string): string[] =>
    hub.lines.filter(
      (line) => line.includes(`"level":"${level}"`) && line.includes('without a link'),
    )
  for (let times = 0; times < 3; times++) await judged()
  t.strictSame(said('warn'), [])
  const readyz = await hub.readyz()
  t.match(readyz, '[ ]boot nothing is recorded yet')
  await startUp(kubeletOf(hub))
  await judged()
  t.strictSame(said('warn'), [], 'what the kubelet is about to read may still be missing')
  await judged()
  t.equal(said('warn').length, 1)
})

void t.test('the boot verdict is renewed every 10 seconds by itself', async (t) => {
  const clock = setClock(t)
  const { hub } = await startedNode(t, never, (cloud) => {
    addSecret(cloud)
    cloud.sandbox.create(pods, podWith('press', secretSource))
  })
  await kubeletOf(hub).get(`${secretPath}?${named('password')}&limit=500&resourceVersion=0`)
  const isReady = async (): Promise<boolean> => (await hub.readyz()).includes('[+]boot')
  clock.forward(9_999)
  t.notOk(await isReady(), 'it is as it was when the hub began')
  clock.forward(1)
  await until('the next verdict', isReady)
  t.equal(await hub.metric('nodehub_boot_ready'), 1)
})

void t.test('the verdict is the same offline, and after a restart there', async (t) => {
  const { cloud, hub } = await startedNode(t, never, (cloud) => {
    addSecret(cloud)
    cloud.sandbox.create(pods, podWith('press', secretSource))
    cloud.sandbox.create(pods, podWith('saw', claimSource))
  })
  await kubeletOf(hub).get(`${secretPath}?${named('password')}`)
  const before = problemsIn(await verdictOf(hub))
  t.strictSame(before, ['saw: missing persistentvolumeclaims data'])
  await goOffline(cloud, hub)
  t.strictSame(problemsIn(await verdictOf(hub)), before)
  await hub.restart()
  await hub.offline()
  t.strictSame(problemsIn(await verdictOf(hub)), before)
})

void t.test('a new pod’s objects are recorded before its kubelet requests them', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  addSecret(cloud)
  cloud.sandbox.create(configMaps, { metadata: { name: 'config', namespace: 'default' }, data: {} })
  const hub = await startTestHub(t, { upstreams: [cloud], config: quick() })
  const kubelet = kubeletOf(hub)
  const resourceVersion = await startUp(kubelet)
  const watch = await kubelet.watch(podsOfNode, { resourceVersion, allowWatchBookmarks: 'true' })
  await verdictUntil(hub, ({ ready, pods }) => ready && pods.length === 0)

  const asked = cloud.sandbox.nextRequest(({ path }) => path === secretPath)
  cloud.sandbox.create(
    pods,
    podWith(
      'press',
      secretSource,
      { configMap: { name: 'config' } },
      {
        secret: { secretName: 'spare', optional: true },
      },
    ),
  )
  await watch.next()
  t.ok(byTheHub(await asked))
  await verdictUntil(hub, ({ ready, pods }) => ready && pods.length === 1)
  await goOffline(cloud, hub)
  // In the kubelet's form, as the kubelet asks after a reboot.
  for (const [name, items] of [
    ['password', 1],
    ['spare', 0],
  ] as const) {
    const answer = await kubelet.get(`${secretPath}?${named(name)}&limit=500&resourceVersion=0`)
    t.equal(answer.status, 200)
    t.equal(answer.headers['content-type'], 'application/vnd.kubernetes.protobuf')
    t.equal((objectOf(answer)['items'] as unknown[]).length, items)
  }
  t.strictSame(
    askedByTheHub(cloud).filter((url) => /services|nodes\?|pods\?/.test(url)),
    [],
    'what the kubelet watches is left to it',
  )
})

const claim = (volumeName?: string): JsonObject => ({
  metadata: { name: 'data', namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], ...(volumeName !== undefined && { volumeName }) },
})

void t.test('a new claim is followed to its volume and its attachment', async (t) => {
  const attachment = attachmentName('handle-1', 'disk.csi.example', nodeName)
  const { cloud, hub } = await startedNode(t, quick(), (cloud) => {
    cloud.sandbox.create(claims, claim('pv-1'))
    cloud.sandbox.create(volumes, {
      metadata: { name: 'pv-1' },
      spec: { csi: { driver: 'disk.csi.example', volumeHandle: 'handle-1' } },
    })
    cloud.sandbox.create(attachments, {
      metadata: { name: attachment },
      spec: { attacher: 'disk.csi.example', nodeName, source: { persistentVolumeName: 'pv-1' } },
      status: { attached: false },
    })
    cloud.sandbox.create(pods, podWith('press', claimSource))
  })
  const unattached = `press: unattached volumeattachments.storage.k8s.io ${attachment}`
  await verdictUntil(hub, (verdict) => problemsIn(verdict).includes(unattached))
  const stored = cloud.sandbox.get(attachments, attachment) as JsonObject
  cloud.sandbox.update(attachments, { ...stored, status: { attached: true } }, 'status')
  const verdict = await verdictUntil(hub, ({ ready }) => ready)
  t.strictSame(problemsIn(verdict), [])
})

void t.test('the claim of a pod’s extended resources is needed, and refreshed', async (t) => {
  const { cloud, hub } = await startedNode(t, quick(), (cloud) => {
    addResourceClaims(cloud)
    const pod = podWith('press')
    cloud.sandbox.create(pods, pod)
    const extendedResourceClaimStatus = { resourceClaimName: 'press-extended' }
    cloud.sandbox.update(pods, { ...pod, status: { extendedResourceClaimStatus } }, 'status')
  })
  const absent = 'press: absent resourceclaims.resource.k8s.io press-extended'
  await verdictUntil(hub, (verdict) => problemsIn(verdict).includes(absent))
  const metadata = { name: 'press-extended', namespace: 'default' }
  cloud.sandbox.create(resourceClaims, { metadata })
  t.strictSame(problemsIn(await verdictUntil(hub, ({ ready }) => ready)), [])
})

void t.test('a claim that changes in the cloud is fresh though no client asks', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(claims, claim('pv-1'))
  cloud.sandbox.create(volumes, { metadata: { name: 'pv-1' }, spec: { local: { path: '/d' } } })
  cloud.sandbox.create(pods, podWith('press', claimSource))
  const hub = await startTestHub(t, { upstreams: [cloud], config: quick() })
  const kubelet = kubeletOf(hub)
  await startUp(kubelet)
  const path = '/api/v1/namespaces/default/persistentvolumeclaims/data'
  await kubelet.get(path)
  await kubelet.get('/api/v1/persistentvolumes/pv-1')
  await verdictUntil(hub, ({ ready }) => ready)
  cloud.touch(claims, 'data', 'default')
  const { version } = cloud.sandbox
  const read = await cloud.sandbox.nextRequest((each) => each.path === path && byTheHub(each))
  if (!read.over.aborted) await new Promise((resolve) => (read.over.onabort = resolve))
  // One after it: the first has been kept by then.
  await cloud.sandbox.nextRequest((each) => each.path === path && byTheHub(each))
  await goOffline(cloud, hub)
  t.equal(at(objectOf(await kubelet.get(path)), 'metadata', 'resourceVersion'), version)
})

void t.test('a forbidden object is reported, and requested ever less often', async (t) => {
  const { cloud, hub } = await startedNode(t, quick(), (cloud) => {
    cloud.sandbox.create(claims, claim('pv-1'))
    cloud.sandbox.authorize((request) => request.resource !== 'persistentvolumeclaims')
    cloud.sandbox.create(pods, podWith('press', claimSource))
  })
  const forbidden = 'press: forbidden persistentvolumeclaims data'
  await verdictUntil(hub, (verdict) => problemsIn(verdict).includes(forbidden))
  // Its own CSINode is requested in the same rounds.
  for (let round = 0; round < 3; round++) {
    await cloud.sandbox.nextRequest((each) => each.path.includes('csinodes') && byTheHub(each))
  }
  const tries = askedByTheHub(cloud).filter((url) => url.includes('persistentvolumeclaims'))
  t.equal(tries.length, 1)
  t.equal(hub.lines.filter((line) => line.includes('does not let this node read')).length, 1)
})

void t.test('offline nothing is requested, and online it is again', async (t) => {
  const { cloud, hub } = await startedNode(t, quick())
  await cloud.sandbox.nextRequest(byTheHub)
  await goOffline(cloud, hub)
  const failures = `nodehub_upstream_requests_total{upstream="${cloud.url}",outcome="failed"}`
  const before = await hub.metric(failures)
  for (let round = 0; round < 10; round++) await verdictOf(hub)
  t.equal(await hub.metric(failures), before)
  const again = cloud.sandbox.nextRequest(byTheHub)
  await goOnline(cloud, hub)
  await again
})

void t.test('a token that the kubelet was given counts until it expires', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.create(serviceAccounts, { metadata: { name: 'default', namespace: 'default' } })
  const access = { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } }
  cloud.sandbox.create(pods, podWith('press', { projected: { sources: [access] } }))
  const hub = await startTestHub(t, { upstreams: [cloud], config: never })
  const kubelet = kubeletOf(hub)
  await startUp(kubelet)
  t.strictSame(problemsIn(await verdictOf(hub)), ['press: missing serviceaccounts/token default'])
  // As a kubelet asks (k/k pkg/volume/projected): no audience is none.
  const uid = cloud.sandbox.get(pods, 'press', 'default')?.metadata.uid ?? ''
  const answer = await kubelet.send('/api/v1/namespaces/default/serviceaccounts/default/token', {
    method: 'POST',
    body: {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: {},
      spec: {
        audiences: null,
        expirationSeconds: 3607,
        boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'press', uid },
      },
    },
  })
  t.equal(answer.status, 201)
  const { tokensUntil = '' } = await verdictUntil(hub, ({ ready }) => ready)
  t.ok(Date.parse(tokensUntil) > Date.now())
  await cloud.unplug()
  await hub.restart()
  await hub.offline()
  t.match(await verdictOf(hub), { ready: true, tokensUntil })
  const token = at(objectOf(answer), 'status', 'token') as string
  t.notMatch(JSON.stringify(await verdictOf(hub)), token)
})

const conditionOf = (cloud: CloudServer, named = 'OfflineReady'): JsonObject | undefined => {
  const node = cloud.sandbox.get(nodes, nodeName)
  const conditions = (at(node, 'status', 'conditions') ?? []) as readonly JsonObject[]
  return conditions.find(({ type }) => type === named)
}

const isPatch = ({ method, path }: SeenRequest): boolean =>
  method === 'PATCH' && path === `/api/v1/nodes/${nodeName}/status`

const patched = async (cloud: CloudServer, act: () => Promise<unknown>): Promise<void> => {
  const patch = cloud.sandbox.nextRequest(isPatch)
  await act()
  const { over } = await patch
  if (!over.aborted) await new Promise((resolve) => (over.onabort = resolve))
}

void t.test('the condition OfflineReady is written where it is enabled', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  addSecret(cloud)
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'as it was' }
  const node = cloud.sandbox.get(nodes, nodeName) as JsonObject
  cloud.sandbox.update(nodes, { ...node, status: { conditions: [ready] } }, 'status')
  const config = { boot: { refreshMs: 500, condition: true } }
  const hub = await startTestHub(t, { upstreams: [cloud], config })
  await patched(cloud, () => hub.online())
  t.match(conditionOf(cloud), { status: 'False', reason: 'NodeNotKept' })
  const kubelet = kubeletOf(hub)
  // What a kubelet asks for first comes one after the other, and the hub may look in between.
  let asked: Promise<unknown> = startUp(kubelet)
  await until('the condition to hold', async () => {
    if (conditionOf(cloud)?.['status'] === 'True') return true
    await patched(cloud, () => asked)
    asked = Promise.resolve()
    return false
  })
  const written = conditionOf(cloud)
  t.match(written, { status: 'True', reason: 'EverythingKept' })
  t.match(conditionOf(cloud, 'Ready'), ready, 'the condition of the kubelet is as it was')
  const report = hubReportIn(cloud.sandbox.get(nodes, nodeName) as JsonObject)
  t.match(report, { version: ownVersion(), onlineSince: /^20.*Z$/, failing: [] })

  // After a restart the node's own condition says what was written, and when it became so.
  await kubelet.get(firstQuestions[0] ?? '')
  const patches = cloud.sandbox.requests.filter(isPatch).length
  await hub.restart()
  await hub.logged('the node would come back without a link')
  await cloud.sandbox.nextRequest(byTheHub)
  t.equal(cloud.sandbox.requests.filter(isPatch).length, patches)
  t.strictSame(conditionOf(cloud), written)
})

void t.test('a condition that may not be written is not tried again', async (t) => {
  const cloud = await startCloud(t)
  addCsiNode(cloud)
  cloud.sandbox.authorize(
    ({ verb, subresource }) => !(verb === 'patch' && subresource === 'status'),
  )
  const hub = await startTestHub(t, { upstreams: [cloud], config: quick(true) })
  await hub.logged('does not let the hub write the condition OfflineReady')
  await startUp(kubeletOf(hub))
  await hub.logged('the node would come back without a link')
  for (let round = 0; round < 2; round++) await cloud.sandbox.nextRequest(byTheHub)
  t.equal(cloud.sandbox.requests.filter(isPatch).length, 1)
})

void t.test('no condition is written unless it is enabled', async (t) => {
  const { cloud, hub } = await startedNode(t, quick())
  await hub.logged('the node would come back without a link')
  await cloud.sandbox.nextRequest(byTheHub)
  t.equal(conditionOf(cloud), undefined)
})
