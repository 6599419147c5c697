import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { addResourceClaims, resourceClaims } from '../kit/bootable.ts'
import {
  nodeName,
  pods,
  secrets,
  serviceAccounts,
  service,
  services,
  configMaps,
} from '../kit/cloud.ts'
import { startCloud, startTestHub, type CloudServer, type TestHub } from '../kit/hub.ts'
import {
  KubeletDouble,
  kubeletAccepts,
  type KubeletDoubleOptions,
  type StartedKubelet,
} from '../kit/kubelet-double/kubelet.ts'
import { release, type Release } from '../kit/kubelet-double/release.ts'
import { attachmentName } from '../kit/kubelet-double/volumes.ts'

const driver = 'disk.example.com'
const handle = 'volume-1'
const storage = (resource: string) => ({ group: 'storage.k8s.io', version: 'v1', resource })
const core = (resource: string) => ({ group: '', version: 'v1', resource })

/** What a kubelet tells the cloud, not the other way round. */
type Now = Pick<KubeletDoubleOptions, 'volumesInUse' | 'podIp'>

const online: Now = { volumesInUse: [`kubernetes.io/csi/${driver}^${handle}`], podIp: '10.1.0.7' }

/** Another volume attaches, and the pods have other addresses. */
const rebooted: Now = { volumesInUse: [...online.volumesInUse, 'other'], podIp: '10.1.0.8' }

/** What is got with the same pods, told otherwise. */
const told = (up: StartedKubelet, { volumesInUse, podIp }: Now): StartedKubelet => ({
  ...up,
  volumesInUse,
  pods: Object.fromEntries(
    Object.entries(up.pods).map(([name, started]) => [name, { ...started, podIp }]),
  ),
})

/** A pod with one of each kind of volume. */
const database: JsonObject = {
  metadata: { name: 'database', namespace: 'default', labels: { app: 'database' } },
  spec: {
    nodeName,
    serviceAccountName: 'robot',
    containers: [{ name: 'main', image: 'registry.example/main:1' }],
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }],
    volumes: [
      { name: 'password', secret: { secretName: 'password' } },
      { name: 'certificate', secret: { secretName: 'certificate' } },
      { name: 'disk', persistentVolumeClaim: { claimName: 'disk' } },
      {
        name: 'kube-api-access',
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { serviceAccountToken: { audience: 'vault', expirationSeconds: 7200, path: 'vault' } },
            { configMap: { name: 'kube-root-ca.crt' } },
          ],
        },
      },
    ],
  },
}

function furnish(cloud: CloudServer, pod = database): void {
  const { sandbox } = cloud
  const named = (name: string): JsonObject => ({ metadata: { name, namespace: 'default' } })
  sandbox.create(serviceAccounts, named('robot'))
  sandbox.create(services, service('web', '10.96.0.7'))
  sandbox.create(services, service('headless', 'None'))
  sandbox.create(secrets, { ...named('password'), data: { password: 'c2VjcmV0' } })
  sandbox.create(secrets, { ...named('certificate'), data: { 'tls.crt': 'Y2VydA==' } })
  sandbox.create(configMaps, { ...named('kube-root-ca.crt'), data: { 'ca.crt': 'PEM' } })
  sandbox.create(storage('csidrivers'), { metadata: { name: driver }, spec: {} })
  sandbox.create(core('persistentvolumes'), {
    metadata: { name: 'pv-1' },
    spec: { csi: { driver, volumeHandle: handle } },
  })
  sandbox.create(core('persistentvolumeclaims'), { ...named('disk'), spec: { volumeName: 'pv-1' } })
  sandbox.create(storage('volumeattachments'), {
    metadata: { name: attachmentName(handle, driver, nodeName) },
    spec: { attacher: driver, nodeName, source: { persistentVolumeName: 'pv-1' } },
    status: { attached: true },
  })
  addResourceClaims(cloud)
  sandbox.create(resourceClaims, named('gpu'))
  sandbox.create(pods, pod)
}

const kubeletOf = (hub: TestHub, of: Release, now: Partial<Now> = {}): KubeletDouble =>
  new KubeletDouble({
    client: hub.as('kubelet', { encoding: 'protobuf', accept: kubeletAccepts }),
    nodeName,
    release: of,
    drivers: [driver],
    ...online,
    ...now,
  })

const stories: readonly (readonly [what: string, of: Release, watchList?: false])[] = [
  ['1.28', release(28)],
  ['1.29', release(29)],
  ['1.30', release(30)],
  ['1.31', release(31)],
  ['1.32', release(32)],
  ['1.33', release(33)],
  ['1.34', release(34)],
  ['1.35', release(35)],
  ['1.35 without WatchList', release(35, false)],
  ['1.35 with an API server that has no WatchList', release(35), false],
]

for (const [what, of, watchList] of stories) {
  void t.test(
    `F18: a kubelet gets all it needs after a reboot without the cloud: ${what}`,
    async (t) => {
      const cloud = await startCloud(t, { ...(watchList === false && { watchList }) })
      furnish(cloud)
      const hub = await startTestHub(t, { upstreams: [cloud] })
      const first = kubeletOf(hub, of)
      const was = await first.start()
      first[Symbol.dispose]()
      t.strictSame(
        was.services,
        of.minor >= 31 ? ['default/web'] : ['default/headless', 'default/web'],
      )
      t.match(was.pods['default/database'], {
        tokens: [String, String],
        secrets: { password: { password: 'c2VjcmV0' }, certificate: { 'tls.crt': 'Y2VydA==' } },
        configMaps: { 'kube-root-ca.crt': { 'ca.crt': 'PEM' } },
        volumes: [{ claim: String, volume: String, attachment: String }],
        resourceClaims: [String],
      })
      await hub.stop()
      await cloud.unplug()
      await hub.start()
      await hub.offline()
      const second = kubeletOf(hub, of, rebooted)
      t.strictSame(await second.start(), told(was, rebooted))
      second[Symbol.dispose]()

      // A second start, of the kubelet alone: it finds what it has written since.
      const again = kubeletOf(hub, of, rebooted)
      t.strictSame(await again.start(), told(was, rebooted))
      again[Symbol.dispose]()
    },
  )
}

void t.test(
  'F18: a kubelet of a later release gets it, too, if it came with the reboot',
  async (t) => {
    const cloud = await startCloud(t)
    // Claims are read in another version, which the cloud has never shown.
    const { resourceClaims: _claims, ...spec } = database['spec'] as JsonObject
    furnish(cloud, { ...database, spec })
    const hub = await startTestHub(t, { upstreams: [cloud] })
    using before = kubeletOf(hub, release(30))
    const was = await before.start()
    await cloud.unplug()
    await hub.restart()
    await hub.offline()
    using after = kubeletOf(hub, release(35))
    t.strictSame(await after.start(), { ...was, services: ['default/web'] })
  },
)
