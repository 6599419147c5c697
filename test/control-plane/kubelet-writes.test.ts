import t from 'tap'
import { readFileSync } from 'node:fs'
import type { Json, JsonObject } from '../../src/api/kube/json.ts'
import { at, Client, objectOf, type Answer } from '../kit/client.ts'
import { nodeName } from '../kit/cloud.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { startTestHub } from '../kit/hub.ts'
import { kubeletAccepts } from '../kit/kubelet-double/kubelet.ts'
import { busyboxPod } from './pod.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false

const namespaced = '/api/v1/namespaces/default'
const nodePath = `/api/v1/nodes/${nodeName}`
const podPath = `${namespaced}/pods/main`

const time = '2026-01-02T03:04:05Z'
const condition = (type: string, status: string): JsonObject => ({
  type,
  status,
  lastHeartbeatTime: time,
  lastTransitionTime: time,
  reason: 'R',
  message: 'm',
})

const beforehand: readonly [string, JsonObject][] = [
  [
    nodePath,
    {
      status: {
        capacity: { cpu: '4', memory: '8Gi', 'hugepages-2Mi': '0' },
        conditions: [condition('MemoryPressure', 'False'), condition('Ready', 'False')],
        addresses: [
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'Hostname', address: nodeName },
        ],
        images: [{ names: ['a:1', 'a@sha256:1'], sizeBytes: 5_000_000_000 }],
        nodeInfo: { kubeletVersion: 'v1.35.0', bootID: 'b' },
        daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
      },
    },
  ],
  [podPath, { status: { phase: 'Pending', qosClass: 'BestEffort', startTime: time } }],
]

/** As kubelets write them. */
const patches: readonly [string, JsonObject][] = [
  [
    nodePath,
    {
      metadata: { labels: { 'example.com/rack': '7' }, annotations: { 'example.com/a': 'b' } },
      status: {
        '$setElementOrder/conditions': [{ type: 'MemoryPressure' }, { type: 'Ready' }],
        conditions: [
          { type: 'MemoryPressure', lastHeartbeatTime: '2026-01-02T03:05:05Z' },
          { type: 'Ready', status: 'True', reason: 'KubeletReady', message: null },
        ],
        addresses: [{ $patch: 'replace' }, { type: 'InternalIP', address: '10.0.0.9' }],
        allocatable: { cpu: '3800m', memory: '7Gi' },
        capacity: { 'hugepages-2Mi': null },
        nodeInfo: { bootID: 'another' },
        volumesInUse: ['kubernetes.io/csi/disk.example.com^v1'],
      },
    },
  ],
  [
    podPath,
    {
      status: {
        phase: 'Running',
        hostIP: '10.0.0.1',
        podIP: '10.1.0.7',
        podIPs: [{ ip: '10.1.0.7' }, { ip: 'fd00::7' }],
        '$setElementOrder/conditions': [{ type: 'Ready' }],
        conditions: [
          { type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: time },
        ],
        containerStatuses: [
          {
            name: 'main',
            image: 'busybox',
            imageID: 'sha256:1',
            containerID: 'containerd://1',
            ready: true,
            started: true,
            restartCount: 2,
            state: { running: { startedAt: time } },
            lastState: { terminated: { exitCode: 137, finishedAt: time, startedAt: time } },
            resources: { requests: { cpu: '100m' } },
          },
        ],
      },
    },
  ],
]

/**
 * Without what tells when and by whom it was written; a time that is null is none, whether it is
 * written or not.
 */
const told = (object: JsonObject): JsonObject => {
  const {
    managedFields: _m,
    resourceVersion: _r,
    ...metadata
  } = object['metadata'] as JsonObject & Record<'managedFields' | 'resourceVersion', unknown>
  return withoutNulls({ ...object, metadata: metadata as JsonObject })
}

const withoutNulls = (object: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(object, (_, value: Json) => value ?? undefined)) as JsonObject

const patch = (client: Client, path: string, body: JsonObject) =>
  client.send(`${path}/status`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/strategic-merge-patch+json' },
    body: JSON.stringify(body),
  })

void t.test('a kubelet’s offline writes are answered as online', { skip }, async (t) => {
  const plane = await startControlPlane(t)
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } }
  await plane.admin.post(`${namespaced}/serviceaccounts`, account)
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } }
  t.equal((await plane.admin.post('/api/v1/nodes', node)).status, 201)
  const made = await plane.admin.post(`${namespaced}/pods`, busyboxPod('main', { nodeName }))
  t.equal(made.status, 201)
  const { certificate, key } = plane.credentials(administrator)
  const read = (file: string): string => readFileSync(file, 'utf8')
  const direct = new Client({
    url: plane.url,
    component: 'kubelet',
    encoding: 'protobuf',
    accept: kubeletAccepts,
    tls: { ca: read(plane.pki.ca.certificate), cert: read(certificate), key: read(key) },
  })
  for (const [path, body] of beforehand)
    t.equal((await patch(direct, path, body)).status, 200, path)

  const flags = [`--kubeconfig=${plane.kubeconfig(administrator)}`]
  const hub = await startTestHub(t, { upstreams: [plane], flags })
  const clients = (['json', 'protobuf'] as const).map((encoding) => hub.as('kubelet', { encoding }))
  const uid = at(objectOf(await direct.get(podPath)), 'metadata', 'uid') as string
  const request: JsonObject = {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {},
    spec: {
      audiences: [],
      expirationSeconds: 3607,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'main', uid },
    },
  }
  const ask = (client: Client) =>
    client.send(`${namespaced}/serviceaccounts/default/token`, { method: 'POST', body: request })
  const given: Answer[] = []
  for (const client of clients) {
    given.push(await ask(client))
    for (const [path] of patches) t.equal((await client.get(path)).status, 200)
  }
  const expected: JsonObject[] = []
  for (const [path, body] of patches) expected.push(told(objectOf(await patch(direct, path, body))))
  await plane.first.daemon.stop()
  await hub.offline()

  for (const [index, client] of clients.entries()) {
    await t.test(`status: ${client.encoding}`, async (t) => {
      for (const [at, [path, body]] of patches.entries()) {
        const answer = await patch(client, path, body)
        t.equal(answer.status, 200)
        t.strictSame(told(objectOf(answer)), expected[at])
      }
    })
    await t.test(`tokens: ${client.encoding}`, async (t) => {
      const again = await ask(client)
      t.equal(given[index]?.status, 201)
      t.equal(again.status, 201)
      t.strictSame(again.body, given[index]?.body)
    })
  }
})
