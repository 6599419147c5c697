import { elapsed, sleep } from '../../base/clock.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt, valueAt } from '../../api/kube/json-at.ts'
import type { ApiServer } from '../api/api-server.ts'
import { ApiFailure } from '../api/failure.ts'
import type { ApplyOptions } from './settle.ts'
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
  const collection = path.slice(0, path.lastIndexOf('/'))
  try {
    const { name: _, ...metadata } = objectAt(manifest, 'metadata')
    const trial = { ...manifest, metadata: { ...metadata, generateName: `${owner.name}-` } }
    await api.create(`${collection}?dryRun=All`, trial)
  } catch (cause) {
    const isRefusal = cause instanceof ApiFailure && [400, 403, 422].includes(cause.status)
    if (!isRefusal || isMissingRight(cause)) throw cause
    say(`  not changed: ${printable(cause.message)}`)
    return false
  }
  const original = recreated(object, 'as it was')
  say('  deleted; should this end before it is there again, create it from this:')
  say(`  ${JSON.stringify(manifest)}`)
  await remove(api, path, owner.uid)
  if (!(await isGone(api, path, owner.uid, settleMs))) {
    say(`  still being deleted after ${Math.round(settleMs / 1000)} s: create it when it is gone`)
    return false
  }
  const made = await api.create(collection, manifest)
  if (await runs(api, path, settleMs)) {
    say('  created again, and running')
    return true
  }
  say('  the new one does not run in time')
  const uid = textAt(made, 'metadata', 'uid')
  await remove(api, path, uid)
  if (await isGone(api, path, uid, settleMs)) await api.create(collection, original)
  say('  taken back')
  return false
}

async function remove(api: ApiServer, path: string, uid: string): Promise<void> {
  try {
    const body = { propagationPolicy: 'Foreground', preconditions: { uid } }
    await api.call({ method: 'DELETE', path, body: JSON.stringify(body) })
  } catch (cause) {
    // 409: another one has its name by now.
    if (!(cause instanceof ApiFailure) || ![404, 409].includes(cause.status)) throw cause
  }
}

const isGone = (api: ApiServer, path: string, uid: string, withinMs: number): Promise<boolean> =>
  within(withinMs, async () => {
    const now = await api.get(path)
    return now === undefined || textAt(now, 'metadata', 'uid') !== uid
  })

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

async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  const began = elapsed()
  for (;;) {
    if (await holds()) return true
    if (elapsed() - began > ms) return false
    await sleep(pollMs)
  }
}
