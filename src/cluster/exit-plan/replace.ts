import { elapsed, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { ApiFailure, isConflict, isNotFound, mayPass } from '../api/failure.ts'
import { seconds, type ApplyOptions } from './settle.ts'
import { printable, type Owner } from './owner.ts'
import { isMissingRight } from './rights.ts'
import { recreated } from './recreate.ts'

const pollMs = 1_000

/**
 * Deletes a pod or Job and creates `manifest` in its place, which the API server has tried before.
 * Where that does not run in time, the one before is created again. Resolves to whether the new one
 * runs.
 */
export async function replace(
  api: ApiServer,
  owner: Owner,
  manifest: JsonObject,
  { settleMs, say }: ApplyOptions,
): Promise<boolean> {
  const { path = '', object = {} } = owner
  try {
    const { name: _, ...metadata } = objectAt(manifest, 'metadata')
    const trial = { ...manifest, metadata: { ...metadata, generateName: `${owner.name}-` } }
    await api.create(`${collectionOf(path)}?dryRun=All`, trial)
  } catch (cause) {
    const isRefusal = cause instanceof ApiFailure && [400, 403, 422].includes(cause.status)
    if (!isRefusal || isMissingRight(cause)) throw cause
    say(`  not changed: ${printable(cause.message)}`)
    return false
  }
  say('  deleted; should this end before it is there again, create it from this:')
  say(`  ${JSON.stringify(manifest)}`)
  if (!(await removed(api, path, owner.uid, settleMs))) {
    say(`  still there after ${seconds(settleMs)}: create it when it is gone`)
    return false
  }
  const made = await created(api, path, manifest, settleMs)
  const isThere = typeof made === 'object'
  if (isThere && (await runs(api, path, settleMs))) {
    say('  created again, and running')
    return true
  }
  say(isThere ? '  the new one does not run in time' : `  not created: ${printable(made)}`)
  const original = recreated(object, 'as it was')
  const isFree = !isThere || (await removed(api, path, made.uid, settleMs))
  const before = isFree
    ? await created(api, path, original, settleMs)
    : `the new one is still there after ${seconds(settleMs)}`
  if (typeof before === 'object') {
    say('  taken back')
    return false
  }
  say(`  not taken back: ${printable(before)}. Create it as it was from this:`)
  say(`  ${JSON.stringify(original)}`)
  return false
}

/** Deletes an object. Resolves to whether it is gone in time. */
async function removed(
  api: ApiServer,
  path: string,
  uid: string,
  withinMs: number,
): Promise<boolean> {
  let isAccepted = false
  return within(withinMs, async () => {
    if (!isAccepted) await remove(api, path, uid)
    isAccepted = true
    const now = await api.get(path)
    return now === undefined || textAt(now, 'metadata', 'uid') !== uid
  })
}

async function remove(api: ApiServer, path: string, uid: string): Promise<void> {
  try {
    const body = { propagationPolicy: 'Foreground', preconditions: { uid } }
    await api.call({ method: 'DELETE', path, body: JSON.stringify(body) })
  } catch (cause) {
    // 409: another one has its name by now.
    if (!isNotFound(cause) && !isConflict(cause)) throw cause
  }
}

/**
 * Creates an object of which there is none, in several attempts where the API server fails.
 * Resolves to its uid, or to the obstacle.
 */
async function created(
  api: ApiServer,
  path: string,
  object: JsonObject,
  withinMs: number,
): Promise<{ readonly uid: string } | string> {
  let made: { readonly uid: string } | string = `no success within ${seconds(withinMs)}`
  let isUnanswered = false
  await within(withinMs, async () => {
    try {
      const answer = await api.create(collectionOf(path), object)
      made = { uid: textAt(answer, 'metadata', 'uid') }
    } catch (cause) {
      if (mayPass(cause)) {
        isUnanswered = true
        throw cause
      }
      if (!(cause instanceof ApiFailure)) throw cause
      // 409 with another reason: a quota was written at the same time.
      if (isConflict(cause) && cause.reason !== 'AlreadyExists') return false
      // An attempt without an answer has created it.
      const own = isConflict(cause) && isUnanswered ? await api.get(path) : undefined
      made = own ? { uid: textAt(own, 'metadata', 'uid') } : cause.message
    }
    return true
  })
  return made
}

const collectionOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/** A pod is ready, or has succeeded; a Job has a ready pod, or has succeeded. */
const runs = (api: ApiServer, path: string, withinMs: number): Promise<boolean> =>
  within(withinMs, async () => {
    const status = objectAt(await api.get(path), 'status')
    const counts = ['ready', 'succeeded'].map((name) => Number(valueAt(status, name) ?? 0))
    return (
      textAt(status, 'phase') === 'Succeeded' ||
      counts.some((count) => count > 0) ||
      listAt(status, 'conditions').some(
        (each) => textAt(each, 'type') === 'Ready' && textAt(each, 'status') === 'True',
      )
    )
  })

/** Repeats the request within that time where the API server fails, or cannot be reached. */
async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const began = elapsed()
  for (;;) {
    try {
      if (await holds()) return true
    } catch (cause) {
      if (!mayPass(cause)) throw cause
    }
    if (elapsed() - began > ms) return false
    await sleep(pollMs)
  }
}
