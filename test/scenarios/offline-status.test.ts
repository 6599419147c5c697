import t from 'tap'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { at, objectOf, type Client, withInitialEvents } from '../kit/client.ts'
import { nodeName, podsOfNode } from '../kit/cloud.ts'
import {
  goOnline,
  goOffline,
  startCloud,
  startTestHub,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'
import type { Teardown } from '../kit/wire/wire.ts'

const nodePath = `/api/v1/nodes/${nodeName}`
const ownNode = `/api/v1/nodes?fieldSelector=metadata.name%3D${nodeName}`
const podPath = '/api/v1/namespaces/default/pods/a'

const strategic = 'application/strategic-merge-patch+json'

const patch = (client: Client, path: string, body: JsonObject | string, type = strategic) =>
  client.send(path, {
    method: 'PATCH',
    headers: { 'Content-Type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const ready = (status: string, rest: JsonObject = {}): JsonObject => ({
  type: 'Ready',
  status,
  lastHeartbeatTime: '2026-01-02T03:04:05Z',
  lastTransitionTime: '2026-01-02T03:04:05Z',
  reason: 'Kubelet',
  message: `is ${status}`,
  ...rest,
})

const nodeStatus: JsonObject = {
  capacity: { cpu: '4', memory: '8Gi' },
  conditions: [ready('True'), { ...ready('False'), type: 'DiskPressure' }],
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  images: [{ names: ['registry.example/main:1'], sizeBytes: 5_000_000_000 }],
  nodeInfo: { kubeletVersion: 'v1.35.0' },
}

const notRoot = process.getuid?.() === 0 ? false : 'only root is shown the records of components'

interface World {
  readonly cloud: CloudServer
  readonly hub: TestHub
  readonly kubelet: Client
}

/** Offline; a kubelet has seen its node and its pods. */
async function offline(t: Teardown, encoding: 'json' | 'protobuf'): Promise<World> {
  const cloud = await startCloud(t)
  cloud.addPods('a')
  const controller = cloud.as('controller')
  await patch(controller, `${nodePath}/status`, { status: nodeStatus })
  await patch(controller, `${podPath}/status`, {
    status: { phase: 'Running', podIP: '10.1.0.1' },
  })
  const hub = await startTestHub(t, { upstreams: [cloud] })
  const kubelet = hub.as('kubelet', { encoding })
  await kubelet.list(ownNode)
  await kubelet.list(podsOfNode)
  await goOffline(cloud, hub)
  return { cloud, hub, kubelet }
}

const version = (object: JsonObject) => at(object, 'metadata', 'resourceVersion')
const firstOf = async (client: Client, path: string): Promise<JsonObject> =>
  at(objectOf(await client.get(path)), 'items', 0) as JsonObject

for (const encoding of ['json', 'protobuf'] as const) {
  void t.test(`status that is written while the cloud is gone: ${encoding}`, async (t) => {
    const { cloud, hub, kubelet } = await offline(t, encoding)
    const before = objectOf(await kubelet.get(nodePath))

    await t.test('of the node is answered with the node as patched', async (t) => {
      const answer = await patch(kubelet, `${nodePath}/status?timeout=10s`, {
        metadata: { labels: { 'example.com/rack': '7' } },
        status: {
          '$setElementOrder/conditions': [{ type: 'Ready' }, { type: 'DiskPressure' }],
          conditions: [{ type: 'Ready', status: 'False', reason: null }],
          addresses: [{ $patch: 'replace' }, { type: 'InternalIP', address: '10.0.0.9' }],
          volumesInUse: ['kubernetes.io/csi/example.com^v1'],
        },
      })
      t.equal(answer.status, 200)
      t.equal(answer.headers['content-type'], (await kubelet.get(nodePath)).headers['content-type'])
      t.match(answer.headers.age, /^\d+$/)
      const node = objectOf(answer)
      t.strictSame(at(node, 'status', 'volumesInUse'), ['kubernetes.io/csi/example.com^v1'])
      const { reason: _reason, ...rest } = ready('False', { message: 'is True' }) as {
        reason: string
      }
      t.strictSame(at(node, 'status', 'conditions', 0), rest)
      t.strictSame(at(node, 'status', 'addresses'), [{ type: 'InternalIP', address: '10.0.0.9' }])
      t.equal(at(node, 'metadata', 'labels', 'example.com/rack'), undefined)
      for (const member of ['capacity', 'images', 'nodeInfo']) {
        t.strictSame(at(node, 'status', member), at(before, 'status', member), member)
      }
      t.equal(version(node), version(before), 'its version stays the cloud’s')
    })

    await t.test('is in no read of a component: all of them have one state', async (t) => {
      const watch = await kubelet.watch(ownNode, withInitialEvents)
      const shown = (await watch.next())?.object as JsonObject
      watch.answer.destroy()
      for (const node of [objectOf(await kubelet.get(nodePath)), await firstOf(kubelet, ownNode)])
        t.strictSame(node['status'], before['status'])
      t.strictSame(shown['status'], before['status'])
      // What is patched next differs from what was read.
      const next = await patch(kubelet, `${nodePath}/status`, { status: { phase: 'Running' } })
      t.strictSame(objectOf(next)['status'], {
        ...(before['status'] as JsonObject),
        phase: 'Running',
      })
    })

    await t.test('is shown to root’s kubectl', { skip: notRoot }, async (t) => {
      const kubectl = hub.as('kubectl')
      t.match(objectOf(await kubectl.get(nodePath)), { status: { phase: 'Running' } })
      t.match(await firstOf(kubectl, '/api/v1/nodes'), { status: { phase: 'Running' } })
    })

    await t.test('of a pod is answered as that of the node', async (t) => {
      const uid = at(await firstOf(kubelet, podsOfNode), 'metadata', 'uid') as string
      const answer = await patch(kubelet, `${podPath}/status`, {
        metadata: { uid, labels: { app: 'b' } },
        status: {
          podIP: '10.1.0.7',
          podIPs: [{ ip: '10.1.0.7' }],
          conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null }],
          containerStatuses: [
            {
              name: 'main',
              ready: true,
              restartCount: 2,
              image: 'registry.example/main:1',
              imageID: 'sha256:1',
              state: { running: { startedAt: '2026-01-02T03:04:05Z' } },
              lastState: {},
            },
          ],
        },
      })
      t.equal(answer.status, 200)
      const expected = {
        metadata: { name: 'a', labels: { app: 'a' } },
        spec: { nodeName },
        status: {
          phase: 'Running',
          podIP: '10.1.0.7',
          podIPs: [{ ip: '10.1.0.7' }],
          containerStatuses: [
            { restartCount: 2, state: { running: { startedAt: '2026-01-02T03:04:05Z' } } },
          ],
        },
      }
      t.match(objectOf(answer), expected)
      t.match(objectOf(await kubelet.get(podPath)), { status: { podIP: '10.1.0.1' } })
      if (notRoot === false)
        t.match(objectOf(await hub.as('kubectl').get(podPath)), expected, 'for a person')
    })

    await t.test('is refused as the cloud would refuse it', async (t) => {
      const refused: readonly [
        code: number,
        path: string,
        body: JsonObject | string,
        type?: string,
      ][] = [
        [409, podPath, { metadata: { uid: 'another' }, status: {} }],
        [409, podPath, { metadata: { resourceVersion: '1' }, status: {} }],
        [400, podPath, '{"status":'],
        [400, podPath, '[]'],
        [400, podPath, { status: { $patch: 'nonsense' } }],
        [415, podPath, 'a: b', 'application/apply-patch+yaml'],
        [415, podPath, { status: {} }, 'application/merge-patch+json'],
        [503, `${podPath}b`, { status: {} }],
        [503, '/api/v1/nodes/another', { status: {} }],
      ]
      for (const [code, path, body, type] of refused) {
        const answer = await patch(kubelet, `${path}/status`, body, type)
        t.equal(answer.status, code, `${path} ${JSON.stringify(body)}`)
      }
    })

    await t.test('is not open to another caller', async (t) => {
      const bearer = hub.as('kubelet', { encoding, token: 'another' })
      t.equal((await patch(bearer, `${nodePath}/status`, { status: {} })).status, 401)
    })

    await t.test('is the cloud’s again once the object has changed there', async (t) => {
      await goOnline(cloud, hub)
      await patch(cloud.as('controller'), `${podPath}/status`, { status: { podIP: '10.1.0.3' } })
      await kubelet.list(podsOfNode)
      await goOffline(cloud, hub)
      for (const client of [kubelet, hub.as('kubectl')])
        t.match(objectOf(await client.get(podPath)), { status: { podIP: '10.1.0.3' } })
    })
  })
}

void t.test('a dry-run patch is not kept', async (t) => {
  const { hub, kubelet } = await offline(t, 'json')
  const path = `${podPath}/status?dryRun=All`
  t.match(objectOf(await patch(kubelet, path, { status: { podIP: '10.1.0.9' } })), {
    status: { podIP: '10.1.0.9' },
  })
  t.match(objectOf(await hub.as('kubectl').get(podPath)), { status: { podIP: '10.1.0.1' } })
})
