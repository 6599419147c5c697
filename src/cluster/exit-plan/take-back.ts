import { isObject, parseJson, type JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import { mergePatch } from '../../api/kube/patch/merge-patch.ts'
import type { ApiServer } from '../api/api-server.ts'
import { againOnConflict, isNotFound } from '../api/failure.ts'
import { annotated, beforeAnnotation, digestOf } from './annotation.ts'
import { controllerOf } from './cluster-state.ts'
import { makesWorkloads, printable, type Owner } from './owner.ts'
import { mergePatchBetween, templateIn } from './patch.ts'
import { seconds, settle, type ApplyOptions, type RollingWorkload } from './settle.ts'

/**
 * Gives an owner its state from before its patch, unless another client has changed the object
 * since. The strategy of the patch stays until the pods have settled: under the one before, a new
 * pod could wait for ever for the port of an old one.
 */
export async function takeBack(
  api: ApiServer,
  owner: Owner,
  { settleMs, say }: ApplyOptions,
): Promise<void> {
  const path = owner.path ?? ''
  const taken = await patchBack(api, owner)
  if (typeof taken === 'string') {
    say(`  left as it is: ${taken}`)
    return
  }
  const { later, held } = taken
  const children = new Map<string, JsonObject>()
  const withinMs = held === undefined ? settleMs : Math.max(settleMs, leastMs)
  const settled = await settle(api, owner, withinMs, async (workloads) => {
    for (const workload of workloads) {
      if (held !== undefined && !children.has(workload.path))
        children.set(workload.path, await holdStrategy(api, workload, held))
      if (workload.kind === 'StatefulSet') await deleteStuck(api, workload, say)
    }
  })
  for (const [child, own] of children) await api.patch(child, 'merge', own)
  await api.patch(path, 'merge', { ...annotated(null), ...later })
  say(
    settled.outcome === 'settled'
      ? `  taken back, and settled in ${seconds(settled.ms)}`
      : '  taken back, but it has not settled: see its pods',
  )
}

/** OpenYurt's controller needs a moment to write its workloads, whose strategies are held then. */
const leastMs = 30_000

interface TakenBack {
  /** The merge patch that gives it the rest, once its pods have settled. */
  readonly later: JsonObject
  /** The strategies that the workloads made of it are to keep until then. */
  readonly held?: JsonObject
}

/**
 * Patches the object back, but for its strategy. A YurtAppSet is patched back whole, as each change
 * of it, that of a strategy too, has its controller make all pods anew: there the workloads keep
 * the strategy, which the controller leaves alone until the next change.
 */
const patchBack = (api: ApiServer, owner: Owner): Promise<TakenBack | string> =>
  againOnConflict(async () => {
    const path = owner.path ?? ''
    const now = await api.get(path)
    const kept = parseJson(textAt(now, 'metadata', 'annotations', beforeAnnotation))
    const spec = valueAt(kept, 'spec')
    if (now === undefined || !isObject(spec)) return 'nothing is kept of what it was before'
    if (textAt(kept, 'of') !== digestOf(now))
      return `it was changed meanwhile; annotation ${beforeAnnotation} has the patch back`
    const metadata = { resourceVersion: textAt(now, 'metadata', 'resourceVersion') }
    const around = templateIn(now)?.path.slice(0, -1) ?? ['spec']
    const before = strategiesIn(objectAt({ spec }, ...around))
    if (makesWorkloads(owner)) {
      await api.patch(path, 'merge', { metadata, spec })
      const changed = Object.keys(before).length > 0
      return { later: {}, ...(changed && { held: strategiesIn(objectAt(now, ...around)) }) }
    }
    const others = strategies.reduce((left, name) => withAt(left, [name], undefined), spec)
    await api.patch(path, 'merge', { metadata, spec: others })
    return { later: { spec: before } }
  })

const strategies = ['strategy', 'updateStrategy'] as const

const strategiesIn = (spec: JsonObject): JsonObject =>
  Object.fromEntries(
    strategies.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]]])),
  )

/** Gives a workload a strategy; resolves to the merge patch that gives it its own again. */
async function holdStrategy(
  api: ApiServer,
  { path, object }: RollingWorkload,
  held: JsonObject,
): Promise<JsonObject> {
  const own = strategiesIn(objectAt(object, 'spec'))
  await api.patch(path, 'merge', { spec: held })
  return { spec: mergePatchBetween(mergePatch(own, held), own) }
}

/** On pods of a StatefulSet. */
const revisionLabel = 'controller-revision-hash'

/**
 * A StatefulSet waits for ever for a broken pod before it replaces it
 * (kubernetes/kubernetes#67250): pods of another revision than the present one are deleted if they
 * are not ready.
 */
async function deleteStuck(
  api: ApiServer,
  { object }: RollingWorkload,
  say: (line: string) => void,
): Promise<void> {
  const { uid, generation } = objectAt(object, 'metadata')
  const revision = textAt(object, 'status', 'updateRevision')
  const observed = Number(valueAt(object, 'status', 'observedGeneration') ?? 0)
  if (revision === '' || observed < Number(generation ?? 0)) return
  const pods = `/api/v1/namespaces/${encodeURIComponent(textAt(object, 'metadata', 'namespace'))}/pods`
  const selector = { labelSelector: `${revisionLabel},${revisionLabel}!=${revision}` }
  for await (const pod of api.list(pods, selector)) {
    const isEnding = valueAt(pod, 'metadata', 'deletionTimestamp') !== undefined
    if (controllerOf(pod)?.uid !== uid || isReady(pod) || isEnding) continue
    const name = textAt(pod, 'metadata', 'name')
    const body = JSON.stringify({ preconditions: { uid: textAt(pod, 'metadata', 'uid') } })
    const path = `${pods}/${encodeURIComponent(name)}`
    try {
      await api.call({ method: 'DELETE', path, body })
      say(`  pod ${printable(name)} deleted: not ready, and its StatefulSet waits for it`)
    } catch (cause) {
      if (!isNotFound(cause)) throw cause
    }
  }
}

const isReady = (pod: JsonObject): boolean =>
  listAt(pod, 'status', 'conditions').some(
    (each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True',
  )
