import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { poolDefinition } from '../../src/cluster/crd/definition.ts'
import { clusterManifests } from '../../src/cluster/install/manifests.ts'
import { webhookConfigurations } from '../../src/cluster/admission/webhooks.ts'
import { nodesKeptInPools } from '../../src/cluster/admission/policies.ts'
import { fieldsOf, poolVersions, type PoolVersion } from '../../src/cluster/crd/node-pool-schema.ts'
import { isObject, type Json, type JsonObject } from '../../src/api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt, withAt } from '../../src/api/kube/json-at.ts'
import { Random } from '../fuzz/random.ts'
import { until } from '../kit/until.ts'
import {
  administrator,
  noControlPlane,
  startControlPlane,
  type ControlPlane,
} from '../kit/control-plane.ts'
import {
  controllers,
  bodyOf,
  controller,
  install,
  installPools,
  uninstall,
  webhooksFor,
} from '../cluster/admission/cluster.ts'
import { randomValue } from '../cluster/crd/random-pool.ts'
import { findKubectls } from './kubectl/find.ts'

const [kubectl] = findKubectls().toReversed()
const skip = noControlPlane() ?? (kubectl === undefined ? 'no kubectl on PATH' : false)
const own = { namespace: 'nodehub-system', name: 'nodehub-cluster' }

const poolsIn = (version: PoolVersion): string => `/apis/apps.openyurt.io/${version}/nodepools`

void t.test(
  'pools in all their versions, and pods, by kubectl',
  { skip, timeout: 300_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const { admin } = plane
    const webhooks = await webhooksFor(t, admin, true)
    await webhooks.start()
    const kubeconfig = plane.kubeconfig(administrator)
    const said = (args: string, input?: object): Promise<Said> =>
      run([`--kubeconfig=${kubeconfig}`, ...args.split(' ')], input && JSON.stringify(input))

    await t.test('a pool that was invalid before the rules can be changed otherwise', async (t) => {
      const definition = JSON.parse(JSON.stringify(poolDefinition(webhooks.target))) as JsonObject
      await installPools(admin, webhooks.target, withoutRules(definition))
      const wrong = pool('v1beta2', 'wrong', { type: 'Cloud', hostNetwork: true })
      t.equal((await admin.post(poolsIn('v1beta2'), wrong)).status, 201)
      const path =
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.apps.openyurt.io'
      const patch = JSON.stringify({ spec: definition['spec'] })
      t.equal((await admin.send('PATCH', path, patch, 'application/merge-patch+json')).status, 200)
      await until(
        'the rules to hold',
        async () =>
          (
            await said(
              'create --dry-run=server -f -',
              pool('v1beta2', 'new', { type: 'Cloud', hostNetwork: true }),
            )
          ).status !== 0,
      )
      const isChangedInAllElse = async (value: string): Promise<void> => {
        const patched = await said(
          `patch np wrong --type=merge -p {"spec":{"labels":{"a":"${value}"}}}`,
        )
        t.match(patched, { status: 0, stderr: '' })
        t.match(await said('patch np wrong --type=merge -p {"spec":{"hostNetwork":false}}'), {
          status: 1,
          stderr: /keeps its hostNetwork/,
        })
      }
      await isChangedInAllElse('definition')
      await install(admin, nodesKeptInPools(controllers))
      await install(admin, webhookConfigurations(webhooks.target, controllers, own))
      await until('webhooks to be called', async () => {
        const { stdout } = await said(
          'create --dry-run=server -o json -f -',
          pool('v1beta2', 'new', {}),
        )
        return stdout.includes('leaderReplicas')
      })
      await isChangedInAllElse('all')
    })

    await t.test('kubectl prints OpenYurt’s columns', async (t) => {
      const hangzhou = pool('v1beta2', 'hangzhou', { hostNetwork: true })
      t.match(await said('apply -f -', hangzhou), { status: 0 })
      const { stdout } = await said('get nodepools hangzhou')
      t.match(stdout, /^NAME +TYPE +READYNODES +NOTREADYNODES +LEADERNODES +LEADERELECTIONAGE +AGE/)
      t.match(stdout, /hangzhou +Edge/)
    })

    await t.test('a pool reads the same in each version, whichever wrote it', (t) =>
      conversions(t, plane),
    )

    await t.test(
      'printed manifests apply, and grant the controller what it needs and no more',
      async (t) => {
        await uninstall(admin, [
          ...nodesKeptInPools(controllers),
          ...webhookConfigurations(webhooks.target, controllers, own),
        ])
        const definition =
          '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.apps.openyurt.io'
        await admin.send('DELETE', definition)
        await until(
          'the definition to be gone',
          async () => (await admin.get(definition)).status === 404,
        )
        const items = clusterManifests({
          ...own,
          image: 'nodehub:1',
          podHostNetwork: false,
          controllers: [],
        })
        const { status, stderr } = await said('apply -f -', {
          apiVersion: 'v1',
          kind: 'List',
          items,
        })
        t.equal(status, 0)
        t.equal(
          stderr.replaceAll(/^Warning: resource .* is missing the .*\n/gm, ''),
          '',
          'without a warning',
        )
        await authoritiesStay(t, plane, said)
        await rights(t, plane)
      },
    )
  },
)

const pool = (version: PoolVersion, name: string, spec: JsonObject): JsonObject => ({
  apiVersion: `apps.openyurt.io/${version}`,
  kind: 'NodePool',
  metadata: { name },
  spec,
})

interface Said {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs kubectl to the end. */
async function run(args: readonly string[], input = ''): Promise<Said> {
  const child = spawn(kubectl?.path ?? '', args, { argv0: 'kubectl' })
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  await once(child, 'close')
  return {
    status: child.exitCode,
    stdout: Buffer.concat(stdout).toString(),
    stderr: Buffer.concat(stderr).toString(),
  }
}

const withoutRules = (definition: JsonObject): JsonObject =>
  withAt(
    definition,
    ['spec', 'versions'],
    listAt(definition, 'spec', 'versions').map((version) =>
      withAt(
        isObject(version) ? version : {},
        ['schema', 'openAPIV3Schema', 'x-kubernetes-validations'],
        undefined,
      ),
    ),
  )

/** Writes random pools in each version, reads them in each, and writes them back through each. */
async function conversions(t: Test, { admin }: ControlPlane): Promise<void> {
  const random = new Random(20_261_121)
  for (const version of poolVersions)
    for (let round = 0; round < 4; round += 1) {
      const name = `${version}-${round}`
      const created = await admin.post(
        poolsIn(version),
        pool(version, name, randomSpec(random, version)),
      )
      if (created.status !== 201) t.fail(`${name}: ${created.body.toString()}`)
      const before = await readAll(name)
      for (const through of poolVersions) {
        const shown = before[through] ?? {}
        const written = withAt(shown, ['spec', 'labels'], { written: through.toLowerCase() })
        const answer = await admin.send(
          'PUT',
          `${poolsIn(through)}/${name}`,
          JSON.stringify(
            withAt(
              written,
              ['metadata', 'resourceVersion'],
              textAt(await current(name), 'metadata', 'resourceVersion'),
            ),
          ),
        )
        t.equal(
          answer.status,
          200,
          `${name} written through ${through}: ${answer.status === 200 ? '' : answer.body.toString()}`,
        )
        const after = await readAll(name)
        for (const seen of poolVersions)
          t.strictSame(
            objectAt(after[seen], 'spec'),
            { ...objectAt(before[seen], 'spec'), labels: { written: through.toLowerCase() } },
            `${name} written through ${through}, read in ${seen}`,
          )
      }
    }

  async function current(name: string): Promise<JsonObject> {
    return bodyOf(await admin.get(`${poolsIn('v1beta2')}/${name}`))
  }

  async function readAll(name: string): Promise<Record<PoolVersion, JsonObject>> {
    const read = await Promise.all(
      poolVersions.map(
        async (version) =>
          [version, bodyOf(await admin.get(`${poolsIn(version)}/${name}`))] as const,
      ),
    )
    return Object.fromEntries(read) as Record<PoolVersion, JsonObject>
  }
}

/** What fits the schema and the rules. */
function randomSpec(random: Random, version: PoolVersion): JsonObject {
  const drawn = Object.entries(fieldsOf[version].spec).flatMap(([name, schema]) =>
    random.once(3) || name === 'taints' || name === 'labels'
      ? []
      : [[name, randomValue(random, schema)] as const],
  )
  const spec: Record<string, Json> = Object.fromEntries(drawn)
  return spec['hostNetwork'] === true ? { ...spec, type: 'Edge' } : spec
}

/**
 * What `nodehub cluster` writes into the configurations is still there once they are applied again.
 */
async function authoritiesStay(
  t: Test,
  { admin }: ControlPlane,
  said: (args: string, input?: object) => Promise<Said>,
): Promise<void> {
  const places: [string, string][] = [
    [
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.apps.openyurt.io',
      '/spec/conversion/webhook/clientConfig/caBundle',
    ],
    [
      '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/nodehub-cluster',
      '/webhooks/0/clientConfig/caBundle',
    ],
  ]
  const value = Buffer.from((await CertificateAuthority.create('a')).certificate).toString('base64')
  for (const [path, pointer] of places) {
    const patch = JSON.stringify([{ op: 'add', path: pointer, value }])
    t.match(await admin.send('PATCH', path, patch, 'application/json-patch+json'), { status: 200 })
  }
  const items = clusterManifests({
    ...own,
    image: 'nodehub:2',
    podHostNetwork: true,
    controllers: [],
  })
  t.match(await said('apply -f -', { apiVersion: 'v1', kind: 'List', items }), { status: 0 })
  for (const [path] of places) t.ok((await admin.get(path)).body.toString().includes(value), path)
}

/** Asks the API server what the service account may do. */
async function rights(t: Test, plane: ControlPlane): Promise<void> {
  const allowed = async (
    verb: string,
    resource: string,
    more: JsonObject = {},
  ): Promise<boolean> => {
    const [name = '', group = ''] = resource.split(/\.(.*)/)
    const [plain = '', subresource] = name.split('/')
    const review = bodyOf(
      await plane.admin.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: controller,
          resourceAttributes: {
            verb,
            group,
            resource: plain,
            ...(subresource && { subresource }),
            ...more,
          },
        },
      }),
    )
    return valueAt(review, 'status', 'allowed') === true
  }
  const home = { namespace: own.namespace }
  const kept = { ...home, name: 'nodehub-cluster-certificates' }
  const definition = { name: 'nodepools.apps.openyurt.io' }
  const needs: [string, string, JsonObject?][] = [
    ['watch', 'nodepools.apps.openyurt.io'],
    ['patch', 'nodepools.apps.openyurt.io'],
    ['patch', 'nodepools/status.apps.openyurt.io'],
    ['watch', 'nodes'],
    ['patch', 'nodes'],
    ['list', 'pods'],
    ['get', 'namespaces'],
    ['get', 'secrets', kept],
    ['patch', 'secrets', kept],
    ['create', 'secrets', home],
    ['create', 'leases.coordination.k8s.io', home],
    ['update', 'leases.coordination.k8s.io', { ...home, name: 'nodehub-cluster' }],
    ['create', 'events', { namespace: 'default' }],
    ['patch', 'customresourcedefinitions.apiextensions.k8s.io', definition],
    [
      'patch',
      'mutatingwebhookconfigurations.admissionregistration.k8s.io',
      { name: 'nodehub-cluster' },
    ],
    [
      'get',
      'validatingwebhookconfigurations.admissionregistration.k8s.io',
      { name: 'yurt-manager-validating-webhook-configuration' },
    ],
  ]
  for (const [verb, resource, more] of needs)
    await until(`${verb} ${resource}`, () => allowed(verb, resource, more), { seconds: 20 })
  const refused: [string, string, JsonObject?][] = [
    ['list', 'secrets', home],
    ['get', 'secrets', { ...kept, namespace: 'kube-system' }],
    ['delete', 'nodes'],
    ['create', 'pods', { namespace: 'default' }],
    ['patch', 'nodes/status'],
    ['delete', 'nodepools.apps.openyurt.io'],
    ['patch', 'mutatingwebhookconfigurations.admissionregistration.k8s.io', { name: 'others' }],
    ['create', 'validatingadmissionpolicies.admissionregistration.k8s.io'],
  ]
  for (const [verb, resource, more] of refused)
    t.notOk(await allowed(verb, resource, more), `${verb} ${resource}`)
}
