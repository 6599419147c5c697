import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../api/kube/json.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { againOnConflict, ApiFailure } from '../api/failure.ts'
import { annotated, digestOf, specOf } from './annotation.ts'
import { ownerName, printable, type Owner } from './owner.ts'
import { mergePatchBetween, templateIn, type PlannedPatch } from './patch.ts'
import type { Step } from './plan.ts'
import { isMissingRight } from './rights.ts'
import { replace } from './replace.ts'
import { seconds, settle, type ApplyOptions, type Settled } from './settle.ts'
import { takeBack } from './take-back.ts'

/**
 * Carries out a plan, one owner after the other. Stops at the first that is refused or does not
 * settle, after taking that one back. Resolves to whether all were done; completed owners stay
 * changed, and the next run goes on from there.
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

function reportOf({ kind }: Owner, { ms, fewest, wanted, withoutMs }: Settled): string {
  if (kind === 'CronJob') return 'settled: its next Job is on the host network'
  const service =
    withoutMs > 0 ? `none available for ${seconds(withoutMs)}` : `${fewest} available at least`
  return `settled in ${seconds(ms)}: ${service}, of ${wanted}`
}

/**
 * Patches the object as it was planned for, after the API server has tried patch and pod: another
 * template than the plan's is left alone. Resolves to the obstacle, if there is one.
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
    const metadata = { resourceVersion, ...objectAt(annotated(kept), 'metadata') }
    await api.patch(path, type, { ...body, metadata })
    return undefined
  })
}

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
 * from the API server's own configuration, applies to pods alone. An operator that may not create
 * pods goes without the trial; a refusal by quota does not count, as each new pod takes the place
 * of an old one.
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
