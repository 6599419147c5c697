import t, { type Test } from 'tap'
import { nodesKeptInPools } from '../../src/cluster/admission/policies.ts'
import { webhookConfigurations } from '../../src/cluster/admission/webhooks.ts'
import { valueAt, textAt } from '../../src/api/kube/json-at.ts'
import { isList, isObject, type Json, type JsonObject } from '../../src/api/kube/json.ts'
import type { ApiClient } from '../kit/cluster/api-client.ts'
import { until } from '../kit/until.ts'
import { noControlPlane, startControlPlane, type ControlPlane } from '../kit/control-plane.ts'
import {
  nodeCases,
  podCases,
  poolCases,
  propagationCases,
  world,
  type AdmissionMode,
  type Case,
} from '../cluster/admission/cases.ts'
import {
  controllers,
  bodyOf,
  controller,
  install,
  installPools,
  webhooksFor,
} from '../cluster/admission/cluster.ts'

const installed = { namespace: 'nodehub-system', name: 'nodehub-cluster' }

const skip = noControlPlane() ?? false
const everyCase = [...poolCases, ...nodeCases, ...podCases, ...propagationCases]

void t.test(
  'a real API server admits pools, nodes and pods by webhooks, and keeps nodes in their pools without them',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const { admin } = plane
    const webhooks = await webhooksFor(t, admin, true)
    await webhooks.start()
    await installPools(admin, webhooks.target)
    await install(admin, nodesKeptInPools(controllers))
    const configurations = webhookConfigurations(webhooks.target, controllers, installed)
    await install(admin, configurations)
    await makeWorld(t, plane)

    await t.test('webhooks', (t) => tryAll(t, plane, 'webhooks'))

    await webhooks.stop()
    await t.test('while no webhook answers', (t) => tryAll(t, plane, 'while no webhook answers'))

    await t.test('without the NodePool CRD nodes register and are patched', (t) =>
      withoutDefinition(t, plane),
    )
  },
)

async function withoutDefinition(t: Test, { admin, first }: ControlPlane): Promise<void> {
  const definition =
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.apps.openyurt.io'
  await admin.send('DELETE', definition)
  await until('the definition to be gone', async () => (await admin.get(definition)).status === 404)
  // One that has followed them before goes on with none; one that starts finds no such kind.
  await first.daemon.restart()
  const labels = { 'apps.openyurt.io/nodepool': 'host' }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'late', labels } }
  t.equal((await admin.post('/api/v1/nodes', node)).status, 201)
  const ready = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
  t.equal((await merge(admin, '/api/v1/nodes/late/status', ready)).status, 200)
  const moved = { metadata: { labels: { 'apps.openyurt.io/nodepool': null } } }
  t.equal((await merge(admin, '/api/v1/nodes/late', moved)).status, 200)
}

async function makeWorld(t: Test, { admin }: ControlPlane): Promise<void> {
  for (const namespace of ['default', 'kube-system'])
    await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'default' },
    })
  const pools = '/apis/apps.openyurt.io/v1beta2/nodepools'
  // Configurations and policies are obeyed a moment after they were written.
  await until('webhooks to be called', async () => {
    const answer = await admin.send('POST', `${pools}?dryRun=All`, JSON.stringify(world.pools[0]))
    return valueAt(bodyOf(answer), 'spec', 'leaderReplicas') === 1
  })
  for (const pool of world.pools) t.equal((await admin.post(pools, pool)).status, 201)
  for (const node of world.nodes) t.equal((await admin.post('/api/v1/nodes', node)).status, 201)
  for (const name of ['left-host', 'left-standard', 'left-gone'])
    t.match(
      await merge(admin, `/api/v1/nodes/${name}`, {
        metadata: { labels: { 'apps.openyurt.io/nodepool': null } },
      }),
      { status: 200 },
    )
  const status = { status: { readyNodeNum: 1, unreadyNodeNum: 0, nodes: ['in-host'] } }
  t.match(await merge(admin, `${pools}/host/status`, status), { status: 200 })
}

const merge = (client: ApiClient, path: string, body: JsonObject) =>
  client.send('PATCH', path, JSON.stringify(body), 'application/merge-patch+json')

async function tryAll(t: Test, plane: ControlPlane, carrier: AdmissionMode): Promise<void> {
  for (const each of everyCase) {
    const wanted = carrier === 'while no webhook answers' ? (each.down ?? each) : each
    if (wanted === 'any') continue
    // A policy is obeyed, and a pool known to it, a moment after it was written: only what stays
    // wrong is wrong.
    let answer = await send(plane, each)
    const isRight = () => differences(wanted, answer).length === 0
    await until(
      each.what,
      async () => {
        answer = await send(plane, each)
        return isRight()
      },
      { seconds: 30 },
    ).catch(() => undefined)
    t.strictSame(differences(wanted, answer), [], each.what)
  }
}

interface Seen {
  readonly status: number
  readonly body: JsonObject
}

async function send(plane: ControlPlane, { method, path, body, as }: Case): Promise<Seen> {
  const client = as === undefined ? plane.admin : clientOf(plane, as)
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const answer = await client.send(method, `${path}?dryRun=All`, body && JSON.stringify(body), type)
  return { status: answer.status, body: bodyOf(answer) }
}

const clients = new Map<string, ApiClient>()

function clientOf(plane: ControlPlane, as: string): ApiClient {
  const known = clients.get(as)
  if (known) return known
  const client = plane.client(
    as === 'controller'
      ? { commonName: controller, organizations: ['system:masters'] }
      : { commonName: as, organizations: ['system:nodes'] },
  )
  clients.set(as, client)
  return client
}

function differences(
  wanted: Pick<Case, 'status' | 'said' | 'shown'>,
  { status, body }: Seen,
): unknown[] {
  const message = textAt(body, 'message')
  const shown = (wanted.shown ?? []).flatMap(([path, value]) => {
    const found = reached(body, path) ?? null
    return JSON.stringify(sorted(found)) === JSON.stringify(sorted(value))
      ? []
      : [{ path, value, found }]
  })
  return [
    ...(status === wanted.status ? [] : [{ wanted: wanted.status, status, message }]),
    ...((wanted.said?.test(message) ?? true) ? [] : [{ wanted: String(wanted.said), message }]),
    ...shown,
  ]
}

/** Numbers lead into lists. */
const reached = (value: Json | undefined, path: readonly string[]): Json | undefined =>
  path.reduce<Json | undefined>(
    (here, step) => (isList(here) ? here[Number(step)] : valueAt(here, step)),
    value,
  )

/** The order of members says nothing; a text of JSON is compared as what it says. */
function sorted(value: Json): Json {
  if (typeof value === 'string' && value.startsWith('{')) return sorted(JSON.parse(value) as Json)
  if (Array.isArray(value)) return (value as readonly Json[]).map(sorted)
  if (!isObject(value)) return value
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]))
}
