import t from 'tap'
import { turn } from '../../../src/base/clock.ts'
import { podsOf, type CollectionQuery } from '../../../src/hub/boot/kubelet-cache.ts'
import { attachmentName, NodePods } from '../../../src/hub/boot/needs.ts'
import type { RefreshResult, BootVerdict, VerdictInputs } from '../../../src/hub/boot/verdict.ts'
import { bootVerdict } from '../../../src/hub/boot/verdict.ts'
import * as resources from '../../../src/api/kube/resources.ts'
import type { GVR } from '../../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'
import type { Encoding } from '../../../src/api/kube/media-type.ts'
import { StoreFailure } from '../../../src/hub/store/store.ts'
import { tokenResource, tokenName } from '../../../src/hub/store/token-name.ts'
import { blockEventLoop } from '../../kit/block-event-loop.ts'
import { FakeKubeletCache } from './fake-kubelet-cache.ts'

const nodeName = 'edge-1'
const now = Date.parse('2026-11-21T12:00:00Z')
const minute = 60_000

const core = (resource: string): GVR => ({ group: '', version: 'v1', resource })
const storage = (resource: string): GVR => ({ group: 'storage.k8s.io', version: 'v1', resource })
const runtimeClasses: GVR = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' }
const services: CollectionQuery = { gvr: core('services'), fieldSelector: 'spec.clusterIP!=None' }

const node: JsonObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } }
const csiNode = { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: nodeName } }
const namedPlace = (resource: string, name: string): CollectionQuery => ({
  gvr: core(resource),
  namespace: 'plant',
  fieldSelector: `metadata.name=${name}`,
})

/** A node that would come back, with these pods. */
function bootable(encoding: Encoding, ...pods: JsonObject[]): FakeKubeletCache {
  return new FakeKubeletCache(encoding)
    .list({ gvr: core('nodes'), fieldSelector: `metadata.name=${nodeName}` }, 'Node', [node])
    .put(core('nodes'), '', nodeName, node)
    .put(storage('csinodes'), '', nodeName, csiNode)
    .list(services, 'Service', [])
    .list({ gvr: storage('csidrivers') }, 'CSIDriver', [])
    .list({ gvr: runtimeClasses }, 'RuntimeClass', [])
    .list(podsOf(nodeName), 'Pod', pods)
}

async function judge(
  cache: FakeKubeletCache,
  facts: Partial<VerdictInputs> = {},
): Promise<BootVerdict> {
  const inputs = {
    nodeName,
    needs: await new NodePods(nodeName).needs(cache),
    now,
    lastRefresh: () => undefined,
    oldBefore: 0,
    refused: [],
  }
  return bootVerdict({ ...inputs, ...facts })
}

const said = ({ pods }: BootVerdict): string[] =>
  pods.flatMap(({ name, problems }) =>
    problems.map((each) => `${name}: ${each.reason} ${each.resource} ${each.name}`),
  )

const pod = (name: string, spec: JsonObject, rest: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'plant', uid: `uid-${name}`, resourceVersion: '5' },
  spec: { nodeName, serviceAccountName: 'operator', ...spec },
  ...rest,
})

const volumes = (...sources: JsonObject[]): JsonObject => ({
  volumes: sources.map((source, at) => ({ name: `v${at}`, ...source })),
})

const secret = (name: string): JsonObject => ({ metadata: { name, namespace: 'plant' }, data: {} })

const ask =
  (answers: Record<string, RefreshResult>): VerdictInputs['lastRefresh'] =>
  ({ name }) =>
    answers[name]

/** A JSON web token without a signature. */
function token(expires: number): string {
  const part = (json: JsonObject): string => Buffer.from(JSON.stringify(json)).toString('base64url')
  return `${part({ alg: 'none' })}.${part({ exp: expires / 1000 })}.none`
}

const tokenAnswer = (expires: number): JsonObject => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  metadata: {},
  spec: { audiences: ['https://kubernetes.default.svc'] },
  status: { token: token(expires), expirationTimestamp: '2026-11-21T12:30:00Z' },
})

function keepToken(cache: FakeKubeletCache, podName: string, expires: number): void {
  const name = tokenName({
    serviceAccount: 'operator',
    audiences: [],
    expirationSeconds: 3607,
    boundObject: { kind: 'Pod', name: podName, uid: `uid-${podName}` },
  })
  cache.put(tokenResource, 'plant', name, tokenAnswer(expires))
}

const access = volumes({
  projected: { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 3607 } }] },
})

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`a node without pods comes back (${encoding})`, async (t) => {
    t.strictSame(await judge(bootable(encoding)), {
      ready: true,
      at: '2026-11-21T12:00:00.000Z',
      node: { name: nodeName, ready: true, unread: false, problems: [] },
      pods: [],
    })
  })

  void t.test(`a pod needs its secret (${encoding})`, async (t) => {
    const known = bootable(encoding, pod('press', volumes({ secret: { secretName: 'tls' } })))
    t.strictSame(said(await judge(known)), ['press: missing secrets tls'])
    t.equal((await judge(known)).ready, false)
    known.list(namedPlace('secrets', 'tls'), 'Secret', [])
    t.strictSame(said(await judge(known)), ['press: absent secrets tls'])
    known.list(namedPlace('secrets', 'tls'), 'Secret', [secret('tls')])
    t.equal((await judge(known)).ready, true)
    known.list(namedPlace('secrets', 'tls'), 'Secret', new StoreFailure('unreadable'))
    t.strictSame(said(await judge(known)), ['press: damaged secrets tls'])
  })

  void t.test(
    `an optional secret may be absent, and must not be unknown (${encoding})`,
    async (t) => {
      const source = { secret: { secretName: 'tls', optional: true } }
      const known = bootable(encoding, pod('press', volumes(source)))
      t.strictSame(said(await judge(known)), ['press: missing secrets tls'])
      known.list(namedPlace('secrets', 'tls'), 'Secret', [])
      t.equal((await judge(known)).ready, true)
    },
  )

  void t.test(`a claim leads to its volume and that to its attachment (${encoding})`, async (t) => {
    const claims = core('persistentvolumeclaims')
    const claim = (volumeName: string): JsonObject => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'plant' },
      spec: { accessModes: ['ReadWriteOnce'], ...(volumeName !== '' && { volumeName }) },
    })
    const source = { persistentVolumeClaim: { claimName: 'data' } }
    const known = bootable(encoding, pod('press', volumes(source)))
    t.strictSame(said(await judge(known)), ['press: missing persistentvolumeclaims data'])
    known.put(claims, 'plant', 'data', claim(''))
    t.strictSame(said(await judge(known)), ['press: unbound persistentvolumeclaims data'])
    known.put(claims, 'plant', 'data', claim('pv-1'))
    t.strictSame(said(await judge(known)), ['press: missing persistentvolumes pv-1'])
    known.put(core('persistentvolumes'), '', 'pv-1', {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv-1' },
      spec: {
        csi: {
          driver: 'disk.csi.example',
          volumeHandle: 'handle-1',
          nodePublishSecretRef: { name: 'mount', namespace: 'plant' },
          nodeStageSecretRef: { name: 'stage', namespace: 'plant' },
        },
      },
    })
    const attachment = attachmentName('handle-1', 'disk.csi.example', nodeName)
    t.strictSame(said(await judge(known)), [
      'press: missing secrets stage',
      'press: missing secrets mount',
      `press: missing volumeattachments.storage.k8s.io ${attachment}`,
    ])
    for (const name of ['mount', 'stage']) {
      known.put(core('secrets'), 'plant', name, {
        apiVersion: 'v1',
        kind: 'Secret',
        ...secret(name),
      })
    }
    const attached = (is: boolean): JsonObject => ({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: attachment },
      spec: { attacher: 'disk.csi.example', nodeName, source: { persistentVolumeName: 'pv-1' } },
      status: { attached: is },
    })
    known.put(storage('volumeattachments'), '', attachment, attached(false))
    t.strictSame(said(await judge(known)), [
      `press: unattached volumeattachments.storage.k8s.io ${attachment}`,
    ])
    known.put(storage('volumeattachments'), '', attachment, attached(true))
    t.equal((await judge(known)).ready, true)
    known.forget(storage('volumeattachments'), '', attachment)
    const driver = (spec: JsonObject): void => {
      known.put(storage('csidrivers'), '', 'disk.csi.example', {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIDriver',
        metadata: { name: 'disk.csi.example' },
        spec,
      })
    }
    driver({ attachRequired: true })
    t.strictSame(said(await judge(known)), [
      `press: missing volumeattachments.storage.k8s.io ${attachment}`,
    ])
    driver({ attachRequired: false, tokenRequests: [{ audience: 'disk' }] })
    // Not attached before it is mounted; but the driver wants a token.
    t.strictSame(said(await judge(known)), ['press: missing serviceaccounts/token operator'])
  })

  void t.test(
    `a pod’s trust bundles have to be there, and its certificates cannot be (${encoding})`,
    async (t) => {
      const bundles = { gvr: resources.trustBundles }
      const projected = (...sources: JsonObject[]): JsonObject =>
        volumes({ projected: { sources } })
      const named = projected({ clusterTrustBundle: { name: 'ca', path: 'ca.crt' } })
      const ofSigner = projected({ clusterTrustBundle: { signerName: 'plant/ca', path: 'ca.crt' } })
      const shown = projected({ podCertificate: { signerName: 'plant/ca', keyType: 'ED25519' } })
      const known = bootable(encoding, pod('press', named), pod('saw', ofSigner))
      const bundle = 'clustertrustbundles.certificates.k8s.io'
      t.strictSame(said(await judge(known)), [
        `press: missing ${bundle} ca`,
        `saw: missing ${bundle} `,
      ])
      known.list(bundles, 'ClusterTrustBundle', [])
      known.put(bundles.gvr, '', 'ca', 'absent')
      t.strictSame(said(await judge(known)), [`press: absent ${bundle} ca`])
      known.put(bundles.gvr, '', 'ca', {
        // Nothing of it is looked into, and of this kind the test can make one in either form.
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'ca' },
      })
      t.equal((await judge(known)).ready, true)
      t.strictSame(said(await judge(bootable(encoding, pod('press', shown)))), [
        'press: missing podcertificaterequests.certificates.k8s.io plant/ca',
      ])
    },
  )

  void t.test(`a token has to be there and unexpired (${encoding})`, async (t) => {
    const known = bootable(encoding, pod('press', access), pod('saw', access))
    t.strictSame(said(await judge(known)), [
      'press: missing serviceaccounts/token operator',
      'saw: missing serviceaccounts/token operator',
    ])
    keepToken(known, 'press', now + 30 * minute)
    keepToken(known, 'saw', now + 10 * minute)
    const verdict = await judge(known)
    t.equal(verdict.ready, true)
    t.strictSame(
      verdict.pods.map(({ tokensUntil }) => tokensUntil),
      ['2026-11-21T12:30:00.000Z', '2026-11-21T12:10:00.000Z'],
    )
    t.equal(verdict.tokensUntil, '2026-11-21T12:10:00.000Z')
    t.strictSame(said(await judge(known, { now: now + 20 * minute })), [
      'saw: expired serviceaccounts/token operator',
    ])
    t.notMatch(JSON.stringify(verdict), token(now + 10 * minute))
  })
}

void t.test('resources that a kubelet needs before any pod are missed by name', async (t) => {
  const { node: verdict, ready } = await judge(new FakeKubeletCache('json'))
  t.equal(ready, false)
  t.strictSame(
    verdict.problems.map(({ reason, resource }) => `${reason} ${resource}`),
    [
      'missing nodes',
      'missing services',
      'missing csidrivers.storage.k8s.io',
      'missing runtimeclasses.node.k8s.io',
      'missing csinodes.storage.k8s.io',
      'missing pods',
    ],
  )
  const older = bootable('json')
  older.forgetList(services)
  older.list({ gvr: core('services') }, 'Service', [])
  t.equal((await judge(older)).ready, true, 'kubelets before 1.31 ask for all services')
})

void t.test('an unreadable list of pods is reported as damaged', async (t) => {
  const known = bootable('json').list(podsOf(nodeName), 'Pod', new StoreFailure('unreadable'))
  t.strictSame(
    (await judge(known)).node.problems.map(({ reason, resource }) => `${reason} ${resource}`),
    ['damaged pods'],
  )
})

void t.test('mirror pods and those that have ended need nothing', async (t) => {
  const needy = volumes({ secret: { secretName: 'tls' } })
  const mirror = pod('mirror', needy)
  const annotations = { 'kubernetes.io/config.mirror': 'x' }
  const known = bootable(
    'json',
    { ...mirror, metadata: { ...(mirror['metadata'] as JsonObject), annotations } },
    pod('ended', needy, { status: { phase: 'Succeeded' } }),
  )
  t.strictSame((await judge(known)).pods, [])
})

void t.test('the outcome of a refresh counts where nothing is stored', async (t) => {
  const source = { persistentVolumeClaim: { claimName: 'data' } }
  const known = bootable('json', pod('press', volumes(source)))
  const problemsAfter = async (outcome: RefreshResult['outcome']): Promise<string[]> =>
    said(await judge(known, { lastRefresh: ask({ data: { outcome } }) }))
  t.strictSame(await problemsAfter('forbidden'), ['press: forbidden persistentvolumeclaims data'])
  t.strictSame(await problemsAfter('absent'), ['press: absent persistentvolumeclaims data'])
  t.strictSame(await problemsAfter('failed'), ['press: missing persistentvolumeclaims data'])
})

void t.test('an object that was not confirmed for long is old, and counts', async (t) => {
  const known = bootable('json', pod('press', volumes({ secret: { secretName: 'tls' } })))
  known.list(namedPlace('secrets', 'tls'), 'Secret', [secret('tls')], now - 20 * minute)
  const { ready, pods } = await judge(known, { oldBefore: now - 15 * minute })
  t.equal(ready, true)
  t.strictSame(pods[0]?.old, [
    {
      resource: 'secrets',
      namespace: 'plant',
      name: 'tls',
      confirmedAt: '2026-11-21T11:40:00.000Z',
    },
  ])
  const lastRefresh = ask({ tls: { outcome: 'confirmed', confirmedAt: now } })
  t.strictSame((await judge(known, { oldBefore: now - 15 * minute, lastRefresh })).pods[0]?.old, [])
})

void t.test('a ResourceClaim counts in the version of an older kubelet, too', async (t) => {
  const spec = { resourceClaims: [{ name: 'camera', resourceClaimName: 'camera-1' }] }
  const known = bootable('json', pod('press', spec))
  t.strictSame(said(await judge(known)), ['press: missing resourceclaims.resource.k8s.io camera-1'])
  const older = { group: 'resource.k8s.io', version: 'v1beta1', resource: 'resourceclaims' }
  known.put(older, 'plant', 'camera-1', {
    apiVersion: 'resource.k8s.io/v1beta1',
    kind: 'ResourceClaim',
    metadata: { name: 'camera-1', namespace: 'plant' },
  })
  t.equal((await judge(known)).ready, true)
})

void t.test('a verdict on many pods yields to the event loop', async (t) => {
  const names = ['a', 'b', 'c', 'd']
  const pods = names.map((name) => pod(name, volumes({ secret: { secretName: name } })))
  const order: string[] = []
  const known = bootable('json', ...pods)
  known.collection = (query, ...how) => {
    const name = names.find((each) => query.fieldSelector === `metadata.name=${each}`)
    if (name !== undefined) {
      order.push(name)
      blockEventLoop(6)
      void turn().then(() => order.push('other'))
    }
    return FakeKubeletCache.prototype.collection.call(known, query, ...how)
  }
  t.strictSame(
    said(await judge(known)),
    names.map((name) => `${name}: missing secrets ${name}`),
  )
  t.strictSame(
    order,
    names.flatMap((name) => [name, 'other']),
  )
})

void t.test('an attachment has the name that the kubelet gives it', async (t) => {
  // echo -n 'vol-1disk.csi.exampleedge-1' | sha256sum
  t.equal(
    attachmentName('vol-1', 'disk.csi.example', 'edge-1'),
    'csi-5b1d4ab1ba26167ccf375056bd8543caa5b9f6f3dd89b91c67a4723342a47832',
  )
})

void t.test('a node that the cloud does not know is not said to be unread', async (t) => {
  const own = { gvr: core('nodes'), fieldSelector: `metadata.name=${nodeName}` }
  const [problem] = (await judge(bootable('json').list(own, 'Node', []))).node.problems
  t.match(problem, { reason: 'absent', resource: 'nodes', name: nodeName })
  t.match(problem?.message, /^an API server has answered that it does not exist: /)
})
