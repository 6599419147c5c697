import { isList, parseJson, type Json, type JsonObject } from '../api/kube/json.ts'
import { valueAt, listAt, objectAt, textAt, withAt } from '../api/kube/json-at.ts'
import { messageOf } from '../config/settings.ts'
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

/**
 * A part of an object of yurt-manager that does nodehub's work, as it is recorded: the webhooks of
 * a configuration, the conversion of NodePools, or, with neither, the controllers of a Deployment.
 */
interface Part {
  readonly path: string
  readonly webhooks?: readonly Json[]
  /** Those of its template, which also has webhooks of controllers that do not run. */
  readonly template?: readonly Json[]
  readonly conversion?: JsonObject
}

export interface YurtManagerConflict {
  readonly part: Part
  /**
   * The object that was read, without the part. Absent: the part is only recorded, as applying
   * nodehub's definition changes it.
   */
  readonly without?: JsonObject
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
    const webhooks = listAt(configuration, 'webhooks').filter(isAboutPools)
    const template = templateOf(configuration)?.filter(isAboutPools) ?? []
    if (webhooks.length + template.length === 0) continue
    const without = withWebhooks(configuration, (these) =>
      these.filter((each) => !isAboutPools(each)),
    )
    found.push({ part: { path, webhooks, template }, without })
  }
  found.push(...(await controllersIn(api)))
  const conversion = objectAt(await api.get(poolDefinitionPath), 'spec', 'conversion')
  if (textAt(conversion, 'webhook', 'clientConfig', 'service', 'name') === webhookService)
    found.push({ part: { path: poolDefinitionPath, conversion } })
  return found
}

async function controllersIn(api: ApiServer): Promise<YurtManagerConflict[]> {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${yurtManager}` })
  const list = await api.get(`/apis/apps/v1/deployments?${query}`)
  return listAt(list, 'items')
    .map((each) => objectAt(each))
    .filter((deployment) => {
      const runs = listAt(deployment, ...containersOf)
        .filter(isOwn)
        .map(argsOf)
        .some(runsNodePools)
      return runs && valueAt(deployment, 'spec', 'replicas') !== 0
    })
    .map((deployment) => {
      const namespace = textAt(deployment, 'metadata', 'namespace')
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${yurtManager}`
      return { part: { path }, without: withControllers(deployment, withoutNodePools) }
    })
}

const containersOf = ['spec', 'template', 'spec', 'containers']

const isOwn = (container: Json): boolean => textAt(container, 'name') === yurtManager

const argsOf = (container: Json): readonly string[] => listAt(container, 'args').map(String)

/** A Deployment whose yurt-manager is given another list of controllers. */
const withControllers = (
  deployment: JsonObject,
  change: (listed: readonly string[]) => readonly string[],
): JsonObject =>
  withAt(
    deployment,
    containersOf,
    listAt(deployment, ...containersOf).map((each) => {
      if (!isOwn(each)) return each
      const args = argsOf(each)
      const list = `--controllers=${change(controllersOf(args)).join(',')}`
      return withAt(objectAt(each), ['args'], [...args.filter((arg) => !flag.test(arg)), list])
    }),
  )

/** A configuration with other webhooks, in its template as well. */
function withWebhooks(
  configuration: JsonObject,
  change: (all: readonly Json[], of: 'webhooks' | 'template') => readonly Json[],
): JsonObject {
  const webhooks = change(listAt(configuration, 'webhooks'), 'webhooks')
  const changed = { ...configuration, webhooks }
  const template = templateOf(configuration)
  if (template === undefined) return changed
  const path = ['metadata', 'annotations', templateAnnotation]
  return withAt(changed, path, JSON.stringify(change(template, 'template')))
}

/**
 * Whether a webhook of yurt-manager concerns the same objects as nodehub's. Its other ones stay.
 */
function isAboutPools(webhook: Json): boolean {
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

function templateOf(configuration: JsonObject): readonly Json[] | undefined {
  const template = parseJson(textAt(configuration, 'metadata', 'annotations', templateAnnotation))
  return isList(template) ? template : undefined
}

/**
 * Whether `--controllers` enables the NodePool controller (k8s.io/controller-manager: a name,
 * `-name`, `*`; the first match counts).
 */
function runsNodePools(args: readonly string[]): boolean {
  const listed = controllersOf(args)
  if (controllerNames.some((name) => listed.includes(name))) return true
  return listed.includes('*') && !controllerNames.some((name) => listed.includes(`-${name}`))
}

const flag = /^--controllers=(.*)$/

/** The list of the last flag; all of them where there is none. */
const controllersOf = (args: readonly string[]): readonly string[] =>
  args
    .findLast((arg) => flag.test(arg))
    ?.replace(flag, '$1')
    .split(',') ?? ['*']

/** The controllers with which yurt-manager leaves pools alone, and runs all else that it ran. */
const withoutNodePools = (listed: readonly string[]): readonly string[] => [
  ...listed.filter((name) => !controllerNames.includes(name)),
  `-${nodePoolController}`,
]

/** Those with which it takes care of pools again. */
function withNodePools(listed: readonly string[]): readonly string[] {
  const others = listed.filter((name) => name !== `-${nodePoolController}`)
  return others.includes('*') ? others : [...others, nodePoolController]
}

/** A line for each thing that is taken with a part, for the operator. */
export function describeConflict({ part }: Pick<YurtManagerConflict, 'part'>): string[] {
  const { path, webhooks, template = [], conversion } = part
  if (conversion) return [`conversion of NodePools by Service ${webhookService}`]
  if (webhooks) {
    const names = new Set([...webhooks, ...template].map((each) => textAt(each, 'name')))
    return [...names].map((name) => `webhook ${name} of ${nameIn(path)}`)
  }
  return [
    `controller ${nodePoolController} of Deployment ${path.split('/')[5]}/${yurtManager}, which restarts`,
  ]
}

const nameIn = (path: string): string => path.split('/').at(-1) ?? ''

/**
 * Takes over everything that conflicts: each part is recorded first, and taken only as it was
 * recorded. Safe to repeat and to run concurrently. Resolves to the parts that were taken.
 */
export async function takeOver(
  api: ApiServer,
  namespace: string,
): Promise<readonly YurtManagerConflict[]> {
  const taken: YurtManagerConflict[] = []
  // Other clients may write the same objects: yurt-manager does when it starts.
  for (let tries = 0; tries < 10; tries++) {
    const conflicts = await conflictsIn(api)
    if (conflicts.length === 0) return taken
    await againOnConflict(() => record(api, namespace, conflicts))
    const known = new Set(taken.map(({ part }) => part.path))
    taken.push(...conflicts.filter(({ part }) => !known.has(part.path)))
    if (conflicts.every(({ without }) => without === undefined)) return taken
    for (const { part, without } of conflicts) {
      try {
        if (without) await write(api, part.path, without)
      } catch (cause) {
        if (!isConflict(cause)) throw cause
      }
    }
  }
  throw new Error('yurt-manager writes its configuration back')
}

/** Writes an object in the version that was read: the API server answers 409 for another one. */
const write = (api: ApiServer, path: string, object: JsonObject): Promise<JsonObject> =>
  api.call({ method: 'PUT', path, body: JSON.stringify(object) })

const recordPath = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps`

const recorded = (api: ApiServer, namespace: string): Promise<JsonObject | undefined> =>
  api.get(`${recordPath(namespace)}/${recordName}`)

const partsIn = (map: JsonObject | undefined): readonly Part[] =>
  JSON.parse(textAt(map, 'data', 'originals') || '[]') as Part[]

/** A part that is recorded already is the original, and stays. */
async function record(
  api: ApiServer,
  namespace: string,
  conflicts: readonly YurtManagerConflict[],
): Promise<void> {
  const before = await recorded(api, namespace)
  const parts = partsIn(before)
  const known = new Set(parts.map(({ path }) => path))
  const added = conflicts.map(({ part }) => part).filter(({ path }) => !known.has(path))
  if (added.length === 0) return
  const data = { originals: JSON.stringify([...parts, ...added]) }
  const path = recordPath(namespace)
  if (before !== undefined) await write(api, `${path}/${recordName}`, { ...before, data })
  else {
    const metadata = { name: recordName, namespace }
    await api.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  }
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
  for (const part of partsIn(record))
    said.push(...(await againOnConflict(() => returned(api, part))))
  if (record !== undefined)
    await api.call({ method: 'DELETE', path: `${recordPath(namespace)}/${recordName}` })
  return said
}

async function returned(api: ApiServer, part: Part): Promise<readonly string[]> {
  const { path } = part
  const object = await api.get(path)
  if (object === undefined) return [`${nameIn(path)} is gone: nothing to roll back`]
  await write(api, path, withPart(part, object))
  return describeConflict({ part })
}

function withPart(part: Part, object: JsonObject): JsonObject {
  const { conversion, webhooks } = part
  if (conversion) return withAt(object, ['spec', 'conversion'], conversion)
  if (!webhooks) return withControllers(object, withNodePools)
  return withWebhooks(object, (there, of) => {
    const names = new Set(there.map((each) => textAt(each, 'name')))
    return [...there, ...(part[of] ?? []).filter((each) => !names.has(textAt(each, 'name')))]
  })
}

async function withoutFinalizers(api: ApiServer): Promise<string[]> {
  const said: string[] = []
  await againOnConflict(async () => {
    for (const pool of listAt(await api.get(poolsPath), 'items')) {
      const all = listAt(pool, 'metadata', 'finalizers')
      if (!all.includes(nodesFinalizer)) continue
      const name = textAt(pool, 'metadata', 'name')
      const finalizers = all.filter((each) => each !== nodesFinalizer)
      const resourceVersion = textAt(pool, 'metadata', 'resourceVersion')
      await api.patch(`${poolsPath}/${name}`, { metadata: { resourceVersion, finalizers } })
      said.push(`finalizer of NodePool ${name}`)
    }
  })
  return said
}
