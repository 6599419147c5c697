import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isObject, parseJson, type Json, type JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt, valueAt, withAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { againOnConflict, ApiFailure, isNotFound } from '../api/failure.ts'
import { beforeAnnotation } from './annotation.ts'
import { controllerOf } from './cluster-state.ts'
import { ownerName, printable, type Owner } from './owner.ts'
import { mergePatchBetween, templateIn, type PlannedPatch } from './patch.ts'
import type { Step } from './plan.ts'
import { isMissingRight } from './rights.ts'
import { replace } from './replace.ts'
import { settle, type ApplyOptions, type Settled } from './settle.ts'

/**
 * Carries out a plan, one owner after the other. Stops at the first that is refused or does not
 * settle, after taking that one back. Resolves to whether all were done; what was done stays, and
 * the next run goes on from there.
 */
export async function applyPlan(
  api: ApiServer,
  steps: readonly Step[],
  options: ApplyOptions,
): Promise<boolean> {
  for (const step of steps) {
    if (step.action === 'leave') continue
    options.say(`${ownerName(step.owner)}:`)
    if (await applied(api, step, options)) continue
    options.say('stopped: owners after this one are as they were; run it again to go on')
    return false
  }
  return true
}

async function applied(api: ApiServer, step: Step, options: ApplyOptions): Promise<boolean> {
  const { owner, action, patch, manifest } = step
  if (action === 'recreate' && manifest) return replace(api, owner, manifest, options)
  if (action === 'patch' && patch) {
    const problem = await patchOwner(api, owner, patch)
    if (problem !== undefined) {
      options.say(`  not changed: ${printable(problem)}`)
      return false
    }
    options.say('  patched')
  }
  const settled = await settle(api, owner, options.settleMs)
  if (settled.outcome === 'settled') {
    await api.patch(owner.path ?? '', 'merge', annotated(null))
    options.say(`  ${reportOf(owner, settled)}`)
    return true
  }
  if (settled.outcome === 'gone') {
    options.say('  deleted meanwhile')
    return true
  }
  options.say(
    settled.outcome === 'failed'
      ? '  its rollout has failed (ProgressDeadlineExceeded)'
      : `  not settled within ${seconds(options.settleMs)}`,
  )
  await takeBack(api, owner, options)
  return false
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

function reportOf({ kind }: Owner, { ms, fewest, wanted, withoutMs }: Settled): string {
  if (kind === 'CronJob') return 'settled: its next Job is on the host network'
  const service =
    withoutMs > 0 ? `none available for ${seconds(withoutMs)}` : `${fewest} available at least`
  return `settled in ${seconds(ms)}: ${service}, of ${wanted}`
}

const annotated = (value: string | null): JsonObject => ({
  metadata: { annotations: { [beforeAnnotation]: value } },
})

/**
 * Patches the object as it was planned for, after the API server has tried patch and pod: another
 * template than the plan's is left alone. Resolves to what is in the way, if anything is.
 */
async function patchOwner(
  api: ApiServer,
  owner: Owner,
  { type, body }: PlannedPatch,
): Promise<string | undefined> {
  const path = owner.path ?? ''
  return againOnConflict(async () => {
    const now = await api.get(path)
    if (now === undefined || textAt(now, 'metadata', 'uid') !== owner.uid)
      return 'it was deleted meanwhile'
    if (!isDeepStrictEqual(specOf(now), specOf(owner.object)))
      return 'it was changed after the plan was made: plan again'
    const resourceVersion = textAt(now, 'metadata', 'resourceVersion')
    const ofVersion = { ...body, metadata: { resourceVersion } }
    const tried = await refusedBy(() => api.patch(`${path}?dryRun=All`, type, ofVersion))
    if (typeof tried === 'string') return tried
    const refusal = await podRefused(api, owner, tried)
    if (refusal !== undefined) return refusal
    const spec = mergePatchBetween(objectAt(tried, 'spec'), objectAt(now, 'spec'))
    const kept = JSON.stringify({ spec, of: digestOf(tried) })
    const { annotations } = objectAt(annotated(kept), 'metadata')
    const metadata = { resourceVersion, ...(annotations !== undefined && { annotations }) }
    await api.patch(path, type, { ...body, metadata })
    return undefined
  })
}

/** A spec without the count that an autoscaler changes. */
const specOf = (object: JsonObject | undefined): Json =>
  withAt(objectAt(object, 'spec'), ['replicas'], undefined)

/** Tells whether a spec is still the one that was patched. */
const digestOf = (object: JsonObject | undefined): string =>
  hash('sha256', JSON.stringify(specOf(object)))

/** The API server's reason, where it refuses an object: invalid, or by a policy or webhook. */
async function refusedBy(act: () => Promise<JsonObject>): Promise<JsonObject | string> {
  try {
    return await act()
  } catch (cause) {
    const isRefusal = cause instanceof ApiFailure && [400, 403, 422].includes(cause.status)
    if (isRefusal && !isMissingRight(cause)) return cause.message
    throw cause
  }
}

/**
 * Has the API server try a pod of the patched template: the level of Pod Security, which may come
 * from the API server's own configuration, applies to pods alone. Who may not create pods goes
 * without the trial; a quota says nothing, as each new pod takes the place of an old one.
 */
async function podRefused(
  api: ApiServer,
  { namespace, name }: Owner,
  patched: JsonObject,
): Promise<string | undefined> {
  const found = templateIn(patched)
  if (found === undefined) return undefined
  const template = objectAt(patched, ...found.path)
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...objectAt(template, 'metadata'), generateName: `${name}-`, namespace },
    spec: objectAt(template, 'spec'),
  }
  try {
    await api.create(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?dryRun=All`, pod)
    return undefined
  } catch (cause) {
    if (!(cause instanceof ApiFailure)) throw cause
    const isPolicy = cause.status === 403 && cause.message.includes('violates PodSecurity')
    return isPolicy || cause.status === 422 ? cause.message : undefined
  }
}

/**
 * Gives an owner what it had before its patch, unless somebody has changed the object since. The
 * strategy of the patch stays until the pods have settled: under the one before, a new pod could
 * wait for ever for the port of an old one.
 */
async function takeBack(
  api: ApiServer,
  owner: Owner,
  { settleMs, say }: ApplyOptions,
): Promise<void> {
  const path = owner.path ?? ''
  const back = await againOnConflict(async () => {
    const now = await api.get(path)
    const kept = parseJson(textAt(now, 'metadata', 'annotations', beforeAnnotation))
    const spec = valueAt(kept, 'spec')
    if (now === undefined || !isObject(spec)) return 'nothing is kept of what it was before'
    if (textAt(kept, 'of') !== digestOf(now))
      return `it was changed meanwhile; annotation ${beforeAnnotation} has the patch back`
    const { strategy, updateStrategy, ...others } = spec
    const resourceVersion = textAt(now, 'metadata', 'resourceVersion')
    await api.patch(path, 'merge', { metadata: { resourceVersion }, spec: others })
    const rest = {
      ...(strategy !== undefined && { strategy }),
      ...(updateStrategy !== undefined && { updateStrategy }),
    }
    return { now, rest }
  })
  if (typeof back === 'string') {
    say(`  left as it is: ${back}`)
    return
  }
  if (owner.kind === 'StatefulSet') await deleteStuck(api, owner, back.now)
  const settled = await settle(api, owner, settleMs)
  await api.patch(path, 'merge', { ...annotated(null), spec: back.rest })
  say(
    settled.outcome === 'settled'
      ? `  taken back, and settled in ${seconds(settled.ms)}`
      : '  taken back, but it has not settled: see its pods',
  )
}

/**
 * A StatefulSet waits for ever for a broken pod before it replaces it
 * (kubernetes/kubernetes#67250): pods of the revision that is taken back are deleted if they are
 * not ready.
 */
async function deleteStuck(api: ApiServer, owner: Owner, before: JsonObject): Promise<void> {
  const revision = textAt(before, 'status', 'updateRevision')
  if (revision === '') return
  const pods = `/api/v1/namespaces/${encodeURIComponent(owner.namespace)}/pods`
  const selector = { labelSelector: `controller-revision-hash=${revision}` }
  for await (const pod of api.list(pods, selector)) {
    if (controllerOf(pod)?.uid !== owner.uid || isReady(pod)) continue
    const uid = textAt(pod, 'metadata', 'uid')
    try {
      await api.call({
        method: 'DELETE',
        path: `${pods}/${encodeURIComponent(textAt(pod, 'metadata', 'name'))}`,
        body: JSON.stringify({ preconditions: { uid } }),
      })
    } catch (cause) {
      if (!isNotFound(cause)) throw cause
    }
  }
}

const isReady = (pod: JsonObject): boolean => {
  const conditions = valueAt(pod, 'status', 'conditions')
  return (
    Array.isArray(conditions) &&
    (conditions as readonly Json[]).some(
      (each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True',
    )
  )
}
