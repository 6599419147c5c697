import t, { type Test } from 'tap'
import { webhooksAsPolicies } from '../../src/cluster/admission/mutating-policies.ts'
import { rulesAsPolicies } from '../../src/cluster/admission/policies.ts'
import { unsupportedPolicies } from '../../src/cluster/admission/policy-support.ts'
import { webhookConfigurations } from '../../src/cluster/admission/webhooks.ts'
import { valueAt, textAt } from '../../src/api/kube/json-at.ts'
import { warningsOf } from '../../src/node/lint/warnings.ts'
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
  actors,
  bodyOf,
  controller,
  discover,
  install,
  installPools,
  uninstall,
  webhooksFor,
} from '../cluster/admission/cluster.ts'

const installed = { namespace: 'nodehub-system', name: 'nodehub-cluster' }

const skip = noControlPlane() ?? false
const everyCase = [...poolCases, ...nodeCases, ...podCases, ...propagationCases]

void t.test(
  'a real API server admits pools, nodes and pods alike by webhooks and policies',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const { admin } = plane
    const webhooks = await webhooksFor(t, admin, true)
    await webhooks.start()
    await installPools(admin, webhooks.target)
    await install(admin, rulesAsPolicies(actors))
    const configurations = webhookConfigurations(webhooks.target, actors, installed)
    await install(admin, configurations)
    await makeWorld(t, plane)

    await t.test('webhooks', (t) => tryAll(t, plane, 'webhooks'))

    await webhooks.stop()
    await t.test('while no webhook answers', (t) =>
      tryAll(t, plane, 'nothing but policies that always hold'),
    )

    await webhooks.start()
    // Before Kubernetes 1.36 it is webhooks that admit nodes and pods, to the end.
    const lacking = (await unsupportedPolicies(discover(admin), 'mutating')) ?? false
    const [own, others] = [true, false].map((podHostNetwork) =>
      webhooksAsPolicies(actors, { podHostNetwork }),
    )
    await t.test('policies instead', { skip: lacking }, async (t) => {
      await uninstall(admin, configurations)
      await install(admin, own ?? [])
      await tryAll(t, plane, 'policies')
    })
    await t.test('policies warn in the words of lint', { skip: lacking }, async (t) => {
      await uninstall(admin, own ?? [])
      await install(admin, others ?? [])
      await warns(t, plane)
    })

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
  for (const name of ['left-host', 'left-standard'])
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
    const wanted = carrier === 'nothing but policies that always hold' ? (each.down ?? each) : each
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

/** What policies say is what lint says, where they say anything; nothing is refused by it. */
async function warns(t: Test, { admin }: ControlPlane): Promise<void> {
  const context = {
    pools: new Map([['host', { hostNetwork: true }]]),
    namespaces: new Map(),
  }
  const container = { name: 'a', image: 'a' }
  const ports = [{ containerPort: 8080 }]
  const inHost = { nodeSelector: { 'apps.openyurt.io/nodepool': 'host' } }
  const exclude = 'apps.openyurt.io/exclude-host-network-pool'
  const old = { key: 'nodepool.openyurt.io/host-network', operator: 'NotIn', values: ['true'] }
  const terms = (...nodeSelectorTerms: Json[]) => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    },
  })
  const cases: [string, JsonObject, JsonObject, string[]][] = [
    ['nothing', {}, {}, []],
    ['a host-network pool', inHost, {}, ['no-pod-network']],
    ['it, and its network', { ...inHost, hostNetwork: true }, {}, ['undeclared-port']],
    [
      'it, with names of the cluster',
      {
        ...inHost,
        hostNetwork: true,
        dnsPolicy: 'ClusterFirstWithHostNet',
        containers: [{ ...container, ports }],
      },
      {},
      ['cluster-dns-on-host-network-pool'],
    ],
    ['it, and is excluded', inHost, { [exclude]: 'true' }, ['never-scheduled']],
    ['another case', {}, { [exclude]: 'True' }, ['exclude-annotation']],
    ['that it is not excluded', {}, { [exclude]: 'false' }, ['exclude-annotation']],
    [
      'both',
      { hostNetwork: true, dnsPolicy: 'Default', containers: [{ ...container, ports }] },
      { [exclude]: 'true' },
      ['exclude-annotation'],
    ],
    ['an old label', terms({ matchExpressions: [old] }), {}, ['old-label']],
    [
      'a term that matches nothing',
      terms({}, { matchExpressions: [{ key: 'a', operator: 'Exists' }] }),
      {},
      ['affinity-matches-nothing'],
    ],
  ]
  for (const [what, spec, annotations, rules] of cases) {
    const full = { containers: [container], ...spec }
    const labels = { app: 'a' }
    const template = { metadata: { labels, annotations }, spec: full }
    for (const [path, object] of [
      ['/api/v1/namespaces/default/pods', { metadata: { name: 'w', annotations }, spec: full }],
      [
        '/apis/apps/v1/namespaces/default/deployments',
        {
          kind: 'Deployment',
          metadata: { name: 'w' },
          spec: { selector: { matchLabels: labels }, template },
        },
      ],
      [
        '/apis/batch/v1/namespaces/default/cronjobs',
        {
          kind: 'CronJob',
          metadata: { name: 'w' },
          spec: {
            schedule: '0 0 * * *',
            jobTemplate: {
              spec: { template: { ...template, spec: { ...full, restartPolicy: 'Never' } } },
            },
          },
        },
      ],
    ] as const) {
      const lint = warningsOf(object as unknown as JsonObject, context)
      const answer = await until(`${what}: ${path}`, async () => {
        const dry = await admin.post(`${path}?dryRun=All`, object)
        const named = dry.warnings.map((text) => /\(([a-z-]+)\)$/.exec(text)?.[1])
        return named.join() === rules.join() && dry
      })
      t.equal(answer.status, 201)
      for (const text of answer.warnings)
        t.ok(
          lint.some((each) => text.endsWith(`: ${each}`)),
          `${what}: ${path.split('/').at(-1)}: ${text}`,
        )
    }
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
