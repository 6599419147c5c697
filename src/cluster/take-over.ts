import { isList, isObject, parseJson, type Json, type JsonObject } from '../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt } from '../api/kube/json-at.ts'
import { messageOf } from '../config/settings.ts'
import { ofVersion } from './admission/json-patch.ts'
import type { ApiServer } from './api/api-server.ts'
import { againOnConflict, isConflict } from './api/failure.ts'
import { nodesFinalizer } from './controller/reconcile.ts'
import { poolDefinitionPath, poolsPath } from './pools.ts'

/** yurt-manager's own names (charts/yurt-manager, pkg/yurtmanager/webhook/util/util.go). */
const yurtManager = 'yurt-manager'
const configurations = [
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/yurt-manager-mutating-webhook-configuration',
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/yurt-manager-validating-webhook-configuration',
] as const
const webhookService = 'yurt-manager-webhook-service'

/** yurt-manager restores its webhooks from this annotation, so it is edited too. */
const templateAnnotation = 'yurt-manager-template'

const nodePoolController = 'nodepool-controller'
/** Its short name, too (cmd/yurt-manager/names/controller_names.go). */
const controllerNames = [nodePoolController, 'nodepool']

/** The ConfigMap that records the parts that were taken. */
const recordName = 'nodehub-cluster-taken-over'

/** A part of yurt-manager that does nodehub's work. */
export type YurtManagerConflict =
  | {
      readonly kind: 'webhooks'
      readonly path: string
      readonly resourceVersion: string
      /** As in the configuration, and in the template. */
      readonly webhooks: readonly JsonObject[]
      readonly template: readonly JsonObject[]
    }
  | {
      readonly kind: 'controller'
      readonly path: string
      readonly resourceVersion: string
      readonly container: number
      readonly args: readonly string[] | undefined
    }
  | {
      readonly kind: 'conversion'
      readonly path: string
      readonly conversion: JsonObject
    }

/**
 * The parts of a cluster's yurt-manager that conflict with nodehub; none where there is no
 * yurt-manager, or where it leaves pools alone.
 */
export async function conflictsIn(api: ApiServer): Promise<readonly YurtManagerConflict[]> {
  const found: YurtManagerConflict[] = []
  for (const path of configurations) {
    const configuration = await api.get(path)
    if (configuration === undefined) continue
    const webhooks = listAt(configuration, 'webhooks').filter(isObject).filter(isAboutPools)
    const template = templateOf(configuration)?.filter(isAboutPools) ?? []
    const resourceVersion = textAt(configuration, 'metadata', 'resourceVersion')
    if (webhooks.length + template.length > 0)
      found.push({ kind: 'webhooks', path, resourceVersion, webhooks, template })
  }
  found.push(...(await controllersIn(api)))
  const conversion = objectAt(await api.get(poolDefinitionPath), 'spec', 'conversion')
  if (textAt(conversion, 'webhook', 'clientConfig', 'service', 'name') === webhookService)
    found.push({ kind: 'conversion', path: poolDefinitionPath, conversion })
  return found
}

async function controllersIn(api: ApiServer): Promise<YurtManagerConflict[]> {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${yurtManager}` })
  const list = await api.get(`/apis/apps/v1/deployments?${query}`)
  return listAt(list, 'items').flatMap((deployment): YurtManagerConflict[] => {
    if (valueAt(deployment, 'spec', 'replicas') === 0) return []
    const containers = listAt(deployment, 'spec', 'template', 'spec', 'containers')
    const container = containers.findIndex((each) => textAt(each, 'name') === yurtManager)
    if (container < 0) return []
    const given = valueAt(containers[container], 'args')
    const args = isList(given) ? given.map(String) : undefined
    if (!runsNodePools(args ?? [])) return []
    const namespace = textAt(deployment, 'metadata', 'namespace')
    return [
      {
        kind: 'controller',
        path: `/apis/apps/v1/namespaces/${namespace}/deployments/${yurtManager}`,
        resourceVersion: textAt(deployment, 'metadata', 'resourceVersion'),
        container,
        args,
      },
    ]
  })
}

/**
 * Whether a webhook of yurt-manager concerns the same objects as nodehub's. Its other ones stay.
 */
function isAboutPools(webhook: JsonObject): boolean {
  if (textAt(webhook, 'clientConfig', 'service', 'name') !== webhookService) return false
  // Its validation of pods is about other things than ours.
  const ours = [
    'nodepools',
    'nodes',
    ...(textAt(webhook, 'name').startsWith('mutate') ? ['pods'] : []),
  ]
  return listAt(webhook, 'rules').some((rule) =>
    ours.some((resource) => listAt(rule, 'resources').includes(resource)),
  )
}

function templateOf(configuration: JsonObject): readonly JsonObject[] | undefined {
  const text = textAt(configuration, 'metadata', 'annotations', templateAnnotation)
  const template = parseJson(text)
  return isList(template) ? template.filter(isObject) : undefined
}

/**
 * Whether `--controllers` enables the NodePool controller (k8s.io/controller-manager: a name,
 * `-name`, `*`; the first match counts).
 */
function runsNodePools(args: readonly string[]): boolean {
  const listed = controllersOf(args)
  if (listed === undefined) return true
  if (controllerNames.some((name) => listed.includes(name))) return true
  if (controllerNames.some((name) => listed.includes(`-${name}`))) return false
  return listed.includes('*')
}

const flag = /^--controllers=(.*)$/

const controllersOf = (args: readonly string[]): readonly string[] | undefined => {
  const given = args.map((arg) => flag.exec(arg)?.[1]).filter((list) => list !== undefined)
  return given.at(-1)?.split(',')
}

/** The arguments with which yurt-manager leaves pools alone, and runs all else that it ran. */
function withoutNodePools(args: readonly string[]): readonly string[] {
  const listed = (controllersOf(args) ?? ['*']).filter((name) => !controllerNames.includes(name))
  const list = `--controllers=${[...listed, `-${nodePoolController}`].join(',')}`
  return [...args.filter((arg) => !flag.test(arg)), list]
}

/** A line for each conflict, for the operator. */
export function describeConflict(conflict: YurtManagerConflict): string[] {
  switch (conflict.kind) {
    case 'webhooks': {
      const names = new Set(
        [...conflict.webhooks, ...conflict.template].map((webhook) => textAt(webhook, 'name')),
      )
      return [...names].map((name) => `webhook ${name} of ${nameIn(conflict.path)}`)
    }
    case 'controller':
      return [
        `controller ${nodePoolController} of Deployment ${namespaceIn(conflict.path)}/${yurtManager}, which restarts`,
      ]
    case 'conversion':
      return [`conversion of NodePools by Service ${webhookService}`]
  }
}

const nameIn = (path: string): string => path.split('/').at(-1) ?? ''
const namespaceIn = (path: string): string => path.split('/')[5] ?? ''

/** The parts that were taken of one object: enough to restore it after any other change. */
interface Original {
  readonly path: string
  readonly webhooks?: readonly JsonObject[]
  readonly template?: readonly JsonObject[]
  readonly container?: number
  /** null: it had none. */
  readonly args?: readonly string[] | null
  readonly ours?: readonly string[]
  readonly conversion?: JsonObject
}

/**
 * Takes over everything that conflicts: each part is recorded first, and taken only as it was
 * recorded. Safe to repeat and to run concurrently. The conversion is only recorded: applying
 * nodehub's definition changes it. Resolves to the parts that were taken.
 */
export async function takeOver(
  api: ApiServer,
  namespace: string,
): Promise<readonly YurtManagerConflict[]> {
  const taken: YurtManagerConflict[] = []
  // Other clients may write the same objects: yurt-manager does when it starts.
  for (let tries = 0; tries < 10; tries++) {
    const conflicts = await conflictsIn(api)
    const open = conflicts.filter(({ kind }) => kind !== 'conversion')
    if (conflicts.length === 0) return taken
    await record(api, namespace, conflicts.map(originalOf))
    taken.push(...conflicts.filter((each) => taken.every(({ path }) => path !== each.path)))
    if (open.length === 0) return taken
    for (const conflict of open) await ignoringConflict(() => take(api, conflict))
  }
  throw new Error('yurt-manager writes its configuration back')
}

const originalOf = (conflict: YurtManagerConflict): Original => {
  const { path } = conflict
  switch (conflict.kind) {
    case 'webhooks':
      return { path, webhooks: conflict.webhooks, template: conflict.template }
    case 'controller': {
      const { container, args } = conflict
      return { path, container, args: args ?? null, ours: withoutNodePools(args ?? []) }
    }
    case 'conversion':
      return { path, conversion: conflict.conversion }
  }
}

async function ignoringConflict(act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (cause) {
    if (!isConflict(cause)) throw cause
  }
}

async function take(api: ApiServer, conflict: YurtManagerConflict): Promise<void> {
  if (conflict.kind === 'conversion') return
  const { path } = conflict
  const version = ofVersion(conflict.resourceVersion)
  if (conflict.kind === 'controller') {
    const pointer = `/spec/template/spec/containers/${conflict.container}/args`
    const value = withoutNodePools(conflict.args ?? [])
    await api.patch(path, 'json', [version, { op: 'add', path: pointer, value }])
    return
  }
  const configuration = await api.get(path)
  if (configuration === undefined) return
  const left = listAt(configuration, 'webhooks')
    .filter(isObject)
    .filter((webhook) => !isAboutPools(webhook))
  await api.patch(path, 'json', [
    version,
    { op: 'add', path: '/webhooks', value: left },
    ...templatePatch(templateOf(configuration)?.filter((webhook) => !isAboutPools(webhook))),
  ])
}

const templatePatch = (template: readonly JsonObject[] | undefined): JsonObject[] =>
  template === undefined
    ? []
    : [
        {
          op: 'add',
          path: `/metadata/annotations/${templateAnnotation}`,
          value: JSON.stringify(template),
        },
      ]

const recordPath = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`

interface TakeOverRecord {
  readonly resourceVersion: string
  readonly originals: readonly Original[]
}

async function recorded(api: ApiServer, namespace: string): Promise<TakeOverRecord | undefined> {
  const map = await api.get(`${recordPath(namespace)}/${recordName}`)
  if (map === undefined) return undefined
  return {
    resourceVersion: textAt(map, 'metadata', 'resourceVersion'),
    originals: JSON.parse(textAt(map, 'data', 'originals') || '[]') as Original[],
  }
}

/** An existing record is the original, and stays. */
async function record(
  api: ApiServer,
  namespace: string,
  originals: readonly Original[],
): Promise<void> {
  for (let tries = 0; tries < 10; tries++) {
    const before = await recorded(api, namespace)
    const known = new Set(before?.originals.map(({ path }) => path))
    const all = [...(before?.originals ?? []), ...originals.filter(({ path }) => !known.has(path))]
    if (before && all.length === before.originals.length) return
    const data = { originals: JSON.stringify(all) }
    try {
      if (before === undefined) {
        const metadata = { name: recordName, namespace }
        await api.create(recordPath(namespace), {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata,
          data,
        })
      } else {
        const { resourceVersion } = before
        await api.patch(`${recordPath(namespace)}/${recordName}`, 'merge', {
          metadata: { resourceVersion },
          data,
        })
      }
      return
    } catch (cause) {
      if (!isConflict(cause)) throw cause
    }
  }
  throw new Error(
    `ConfigMap ${namespace}/${recordName} keeps being written by another client: stop it, and take over again`,
  )
}

/**
 * Restores all that was recorded, and removes nodehub's finalizer from the pools, which nothing
 * else would. To be called when no replica runs any more. Resolves to a line for each part that was
 * restored, and for each that was not, why. Where pools cannot be written it rejects with the
 * reason, before anything is restored.
 */
export async function giveBack(api: ApiServer, namespace: string): Promise<readonly string[]> {
  // Writes of pools wait for nodehub's own webhooks, which do not answer once no replica runs.
  const said = await withoutFinalizers(api).catch((cause: unknown) => {
    throw new Error(
      `nothing was rolled back, as pools cannot be written; where that waits for nodehub's webhooks: kubectl delete mutatingwebhookconfiguration/nodehub-cluster validatingwebhookconfiguration/nodehub-cluster, and run this again then (${messageOf(cause)})`,
      { cause },
    )
  })
  const record = await recorded(api, namespace)
  for (const original of record?.originals ?? [])
    said.push(...(await againOnConflict(() => returned(api, original))))
  if (record !== undefined)
    await api.call({ method: 'DELETE', path: `${recordPath(namespace)}/${recordName}` })
  return said
}

async function returned(api: ApiServer, original: Original): Promise<string[]> {
  const { path } = original
  const object = await api.get(path)
  if (object === undefined) return [`${nameIn(path)} is gone: nothing to roll back`]
  const version = ofVersion(textAt(object, 'metadata', 'resourceVersion'))
  if (original.webhooks !== undefined) {
    const webhooks = withMissing(listAt(object, 'webhooks').filter(isObject), original.webhooks)
    const template = templateOf(object)
    await api.patch(path, 'json', [
      version,
      { op: 'add', path: '/webhooks', value: webhooks },
      ...templatePatch(template && withMissing(template, original.template ?? [])),
    ])
    return original.webhooks.map(
      (webhook) => `webhook ${textAt(webhook, 'name')} of ${nameIn(path)}`,
    )
  }
  if (original.conversion !== undefined) {
    await api.patch(path, 'json', [
      version,
      { op: 'replace', path: '/spec/conversion', value: original.conversion },
    ])
    return [`conversion of NodePools by Service ${webhookService}`]
  }
  const pointer = `/spec/template/spec/containers/${original.container ?? 0}/args`
  const now = valueAt(
    listAt(object, 'spec', 'template', 'spec', 'containers')[original.container ?? 0],
    'args',
  )
  if (JSON.stringify(now) !== JSON.stringify(original.ours))
    return [`the arguments of ${nameIn(path)} have been changed since and are left as they are`]
  await api.patch(path, 'json', [
    version,
    original.args === null || original.args === undefined
      ? { op: 'remove', path: pointer }
      : { op: 'replace', path: pointer, value: original.args },
  ])
  return [`controller ${nodePoolController} of Deployment ${namespaceIn(path)}/${yurtManager}`]
}

const withMissing = (
  there: readonly JsonObject[],
  taken: readonly JsonObject[],
): readonly JsonObject[] => {
  const names = new Set(there.map((webhook) => textAt(webhook, 'name')))
  const authority = there
    .map((webhook) => textAt(webhook, 'clientConfig', 'caBundle'))
    .find(Boolean)
  return [
    ...there,
    ...taken
      .filter((webhook) => !names.has(textAt(webhook, 'name')))
      // Its certificate may have been renewed since.
      .map((webhook) =>
        authority === undefined
          ? webhook
          : {
              ...webhook,
              clientConfig: { ...objectAt(webhook, 'clientConfig'), caBundle: authority },
            },
      ),
  ]
}

async function withoutFinalizers(api: ApiServer): Promise<string[]> {
  const said: string[] = []
  await againOnConflict(async () => {
    for (const pool of await poolsWithFinalizer(api)) {
      await takeFinalizer(api, pool)
      said.push(`finalizer of NodePool ${textAt(pool, 'metadata', 'name')}`)
    }
  })
  return said
}

async function poolsWithFinalizer(api: ApiServer): Promise<readonly Json[]> {
  return listAt(await api.get(poolsPath), 'items').filter((pool) =>
    listAt(pool, 'metadata', 'finalizers').includes(nodesFinalizer),
  )
}

const takeFinalizer = (api: ApiServer, pool: Json): Promise<JsonObject> =>
  api.patch(`${poolsPath}/${textAt(pool, 'metadata', 'name')}`, 'merge', {
    metadata: {
      resourceVersion: textAt(pool, 'metadata', 'resourceVersion'),
      finalizers: listAt(pool, 'metadata', 'finalizers').filter((each) => each !== nodesFinalizer),
    },
  })
