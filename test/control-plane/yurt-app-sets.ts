import { hash } from 'node:crypto'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../src/api/kube/json-at.ts'
import { nodePoolLabel } from '../../src/api/kube/node-pool.ts'
import { connect } from '../../src/cluster/api/connect.ts'
import type { ApiServer } from '../../src/cluster/api/api-server.ts'
import { ApiInformer } from '../../src/cluster/api/informer.ts'
import { WorkQueue } from '../../src/cluster/controller/work-queue.ts'
import { rolloutOf } from './rollout.ts'
import type { Scope } from '../kit/cluster/workspace.ts'
import { administrator, type ControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'

const group = '/apis/apps.openyurt.io/v1beta1'
const sets = '/yurtappsets'
const label = (name: string): string => `apps.openyurt.io/${name}`

/** The template in a YurtAppSet, by the kind that is made of it. */
const templates = { Deployment: 'deploymentTemplate', StatefulSet: 'statefulSetTemplate' } as const

type Kind = keyof typeof templates

const opaque = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** As OpenYurt defines it, with its storage version alone, and less of a schema. */
const definition: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'yurtappsets.apps.openyurt.io' },
  spec: {
    group: 'apps.openyurt.io',
    scope: 'Namespaced',
    names: {
      kind: 'YurtAppSet',
      listKind: 'YurtAppSetList',
      plural: 'yurtappsets',
      singular: 'yurtappset',
    },
    versions: [
      {
        name: 'v1beta1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: opaque, status: opaque } },
        },
      },
    ],
  },
}

/**
 * Has the API serve YurtAppSets, and a controller that does with them what yurt-manager's does
 * (openyurt pkg/yurtmanager/controller/yurtappset): a workload for each pool; all of its spec is
 * written again when the YurtAppSet has another spec, and nothing of it otherwise.
 */
export async function startYurtAppSets(t: Scope, plane: ControlPlane): Promise<void> {
  await plane.admin.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  await until('the API to serve YurtAppSets', async () => {
    return (await plane.admin.get(`${group}${sets}`)).status === 200
  })
  const access = { kind: 'kubeconfig', file: plane.kubeconfig(administrator) } as const
  const { api, ...connected } = await connect({ access, namespace: '', qps: 50, burst: 100 })
  t.teardown(async () => connected[Symbol.asyncDispose]())
  const queue = new WorkQueue({
    workers: 1,
    act: async (key) => reconcile(api, key),
    onFailure: (key, cause) => t.comment('YurtAppSet', key, cause),
    firstWaitMs: 50,
  })
  t.teardown(() => queue[Symbol.asyncDispose]())
  const informers = [
    new ApiInformer(api, {
      path: `${group}${sets}`,
      transform: () => true,
      onChange: (key) => queue.add(key),
    }),
    // Of StatefulSets it is not told.
    new ApiInformer(api, {
      path: '/apis/apps/v1/deployments',
      transform: (object) => ownerKeyOf(object),
      onChange: (_, now) => {
        if (now !== undefined && now !== '') queue.add(now)
      },
    }),
  ]
  for (const each of informers) t.teardown(() => each[Symbol.asyncDispose]())
}

/** `namespace/name` of the YurtAppSet that made it; '' where none did. */
const ownerKeyOf = (object: JsonObject): string => {
  const owner = listAt(object, 'metadata', 'ownerReferences').find(
    (each) => textAt(each, 'kind') === 'YurtAppSet',
  )
  return owner ? `${textAt(object, 'metadata', 'namespace')}/${textAt(owner, 'name')}` : ''
}

async function reconcile(api: ApiServer, key: string): Promise<undefined> {
  const [namespace = '', name = ''] = key.split('/')
  const path = `${group}/namespaces/${namespace}${sets}/${name}`
  const set = await api.get(path)
  if (set === undefined) return
  const spec = JSON.stringify(set['spec'])
  const revision = `${name}-${hash('sha256', spec).slice(0, 10)}`
  const kind: Kind = valueAt(set, ...wayTo('Deployment')) ? 'Deployment' : 'StatefulSet'
  const collection = `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`
  const children: JsonObject[] = []
  for await (const child of api.list(collection))
    if (ownerKeyOf(child) === key) children.push(child)
  const poolOf = (child: JsonObject): string =>
    textAt(child, 'metadata', 'labels', label('pool-name'))
  for (const pool of listAt(set, 'spec', 'pools').map(String)) {
    const child = children.find((each) => poolOf(each) === pool)
    if (child === undefined)
      await api.create(collection, written(set, { kind, metadata: {} }, { pool, revision }))
    else if (revisionOf(child) !== revision)
      await api.call({
        method: 'PUT',
        path: `${collection}/${textAt(child, 'metadata', 'name')}`,
        body: JSON.stringify(written(set, { ...child, kind }, { pool, revision })),
      })
  }
  const settled = children.filter((child) => rolloutOf(kind, child).state === 'settled')
  const status = {
    currentRevision: revision,
    observedGeneration: valueAt(set, 'metadata', 'generation') ?? 0,
    readyWorkloads: settled.length,
    totalWorkloads: children.length,
    updatedWorkloads: children.filter((child) => revisionOf(child) === revision).length,
  }
  if (JSON.stringify(status) === JSON.stringify(set['status'])) return
  const body = JSON.stringify({ ...set, status })
  await api.call({ method: 'PUT', path: `${path}/status`, body })
}

const wayTo = (kind: Kind): readonly string[] => [
  'spec',
  'workload',
  'workloadTemplate',
  templates[kind],
]

const revisionOf = (child: JsonObject): string =>
  textAt(child, 'metadata', 'labels', label('controller-revision-hash'))

/** A workload as its pool is to have it. */
function written(
  set: JsonObject,
  child: JsonObject & { readonly kind: Kind },
  { pool, revision }: { readonly pool: string; readonly revision: string },
): JsonObject {
  const { apiVersion = '', kind = '' } = set
  const { name = '', uid = '' } = objectAt(set, 'metadata')
  const owner = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
  const ofPool = { [label('pool-name')]: pool }
  const labels = { ...ofPool, [label('controller-revision-hash')]: revision }
  const members: readonly (readonly [way: readonly string[], more: JsonObject])[] = [
    [['selector', 'matchLabels'], ofPool],
    [['template', 'metadata', 'labels'], labels],
    [['template', 'spec', 'nodeSelector'], { [nodePoolLabel]: pool }],
  ]
  const spec = members.reduce(
    (made, [way, more]) => withAt(made, way, { ...objectAt(made, ...way), ...more }),
    objectAt(set, ...wayTo(child.kind), 'spec'),
  )
  return {
    ...child,
    apiVersion: 'apps/v1',
    metadata: {
      generateName: `${textAt(set, 'metadata', 'name')}-${pool}-`,
      ...objectAt(child, 'metadata'),
      labels: { ...objectAt(child, 'metadata', 'labels'), ...labels },
      ownerReferences: [owner],
    },
    spec,
  }
}
