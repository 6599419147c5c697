import t from 'tap'
import type { JsonObject } from '../../src/kube/json.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'
import { at, objectOf, type Client } from '../kit/client.ts'
import { startCloud, startTestHub, type TestHub } from '../kit/hub.ts'

t.setTimeout(60_000)

const maps = '/api/v1/namespaces/default/configmaps'
const identity = { apiVersion: 'v1', kind: 'ConfigMap' }
const protobuf = 'application/vnd.kubernetes.protobuf'

/** A program that writes and reads nothing but protobuf, as kubelet does. */
async function lifeOfAnObject(t: Tap, client: Client, json: Client): Promise<void> {
  const named = (data: JsonObject, metadata: JsonObject = {}): JsonObject => ({
    ...identity,
    metadata: { name: 'settings', namespace: 'default', ...metadata },
    data,
  })
  const created = await client.send(maps, { method: 'POST', body: named({ a: '1' }) })
  t.equal(created.status, 201)
  t.equal(created.headers['content-type'], protobuf)
  const resourceVersion = at(objectOf(created), 'metadata', 'resourceVersion') ?? null

  const updated = await client.send(`${maps}/settings`, {
    method: 'PUT',
    body: named({ a: '2', binary: 'é\u0001' }, { resourceVersion }),
  })
  t.equal(updated.status, 200)
  t.strictSame(at(objectOf(updated), 'data'), { a: '2', binary: 'é\u0001' })
  t.not(at(objectOf(updated), 'metadata', 'resourceVersion'), resourceVersion)

  const late = await client.send(`${maps}/settings`, {
    method: 'PUT',
    body: named({ a: '3' }, { resourceVersion }),
  })
  t.match(objectOf(late), { kind: 'Status', reason: 'Conflict', code: 409 })
  t.equal(late.headers['content-type'], protobuf)

  const read = await client.get(`${maps}/settings`)
  t.strictSame(read.body, updated.body, 'what is read is what the update said')
  t.strictSame(at(objectOf(await json.get(`${maps}/settings`)), 'data'), at(objectOf(read), 'data'))
}

type Tap = Pick<typeof t, 'equal' | 'not' | 'strictSame' | 'match'>

async function lives(t: Tap, hub: TestHub): Promise<void> {
  await lifeOfAnObject(t, hub.as('kubelet', { encoding: 'protobuf' }), hub.as('kubectl'))
}

void t.test('F24: protobuf passes both ways, updates and refusals included', async (t) => {
  await lives(t, await startTestHub(t, { upstreams: [await startCloud(t)] }))
})

const skip = noControlPlane() ?? false

void t.test(
  'F24: protobuf passes both ways between a client and a real API server',
  { skip, timeout: 60_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const flags = [`--kubeconfig=${plane.kubeconfig(administrator)}`]
    await lives(t, await startTestHub(t, { upstreams: [plane], flags }))
  },
)
