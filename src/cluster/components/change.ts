import { isDeepStrictEqual } from 'node:util'
import { elapsed, sleep } from '../../base/clock.ts'
import type { Json, JsonObject } from '../../api/kube/json.ts'
import { valueAt, objectAt, textAt } from '../../api/kube/json-at.ts'
import { escapeToken, ofVersion } from '../admission/json-patch.ts'
import type { ApiServer } from '../api/api-server.ts'
import { againOnConflict, ApiFailure, isNotFound } from '../api/failure.ts'
import { affinityKeptOff } from './placement.ts'
import { rolloutOf } from './rollout.ts'
import type { ScheduledPod } from './survey.ts'
import type { Component } from './component.ts'

/** On the workload: its template's affinity before it was changed; `null` where it had none. */
const originalAnnotation = 'nodehub.io/affinity-before'

const annotationPath = `/metadata/annotations/${escapeToken(originalAnnotation)}`

const pathOf = ({
  kind,
  namespace,
  name,
}: Pick<Component, 'kind' | 'namespace' | 'name'>): string =>
  `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s/${name}`

export type ChangeOutcome =
  /** The API server has it; `rolledOut` waits for the pods. */
  'changed' | 'nothing to change' | 'nothing to take back' | 'changed by another client since'

/** Keeps a component off host-network nodes, and stores its former affinity on it. */
export const apply = (api: ApiServer, component: Component): Promise<ChangeOutcome> =>
  written(api, component, (workload) => {
    const template = objectAt(workload, 'spec', 'template')
    const affinity = affinityKeptOff(template)
    if (affinity === undefined) return 'nothing to change'
    const before = JSON.stringify(valueAt(template, 'spec', 'affinity') ?? null)
    return [
      { op: 'add', path: '/spec/template/spec/affinity', value: affinity },
      ...annotated(workload, before),
    ]
  })

/** Restores the affinity that a component had, unless the affinity has been changed since. */
export const revert = (api: ApiServer, component: Component): Promise<ChangeOutcome> =>
  written(api, component, (workload) => {
    const kept = valueAt(workload, 'metadata', 'annotations', originalAnnotation)
    if (typeof kept !== 'string') return 'nothing to take back'
    const before = JSON.parse(kept) as Json
    const template = objectAt(workload, 'spec', 'template')
    const spec = objectAt(template, 'spec')
    const original = { ...template, spec: { ...spec, affinity: before ?? {} } }
    if (!isDeepStrictEqual(affinityKeptOff(original), spec['affinity']))
      return 'changed by another client since'
    return [
      before === null
        ? { op: 'remove', path: '/spec/template/spec/affinity' }
        : { op: 'replace', path: '/spec/template/spec/affinity', value: before },
      { op: 'remove', path: annotationPath },
    ]
  })

/** The annotation of the first change stays: it holds the original. */
function annotated(workload: JsonObject, before: string): JsonObject[] {
  const annotations = valueAt(workload, 'metadata', 'annotations')
  if (annotations === undefined)
    return [{ op: 'add', path: '/metadata/annotations', value: { [originalAnnotation]: before } }]
  if (valueAt(annotations, originalAnnotation) !== undefined) return []
  return [{ op: 'add', path: annotationPath, value: before }]
}

function written(
  api: ApiServer,
  component: Component,
  patchOf: (workload: JsonObject) => readonly JsonObject[] | Exclude<ChangeOutcome, 'changed'>,
): Promise<ChangeOutcome> {
  const path = pathOf(component)
  return againOnConflict(async () => {
    const workload = await api.get(path)
    const patch = workload === undefined ? 'nothing to change' : patchOf(workload)
    if (typeof patch === 'string') return patch
    const version = ofVersion(textAt(workload, 'metadata', 'resourceVersion'))
    await api.patch(path, 'json', [version, ...patch])
    return 'changed'
  })
}

/** How often the rollout of a component is checked. */
const pollMs = 1_000

/**
 * Whether the pods of a component have settled within the time: nodes that cannot be reached keep
 * theirs from it.
 */
export async function rolledOut(
  api: ApiServer,
  component: Component,
  withinMs: number,
): Promise<boolean> {
  const began = elapsed()
  for (;;) {
    const workload = await api.get(pathOf(component))
    if (workload === undefined || rolloutOf(component.kind, workload).state === 'settled')
      return true
    if (elapsed() - began > withinMs) return false
    await sleep(pollMs)
  }
}

/**
 * Requests the eviction of a pod, which its disruption budget may refuse. Resolves to the outcome,
 * for an operator.
 */
export async function evict(api: ApiServer, { namespace, name }: ScheduledPod): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`
  const body = JSON.stringify({ metadata: { name, namespace } })
  try {
    // A refusal by the budget is final: the operator decides when to try again.
    await api.call({ method: 'POST', path, body, tries: 1 })
    return 'evicted'
  } catch (cause) {
    if (isNotFound(cause)) return 'gone already'
    if (cause instanceof ApiFailure && cause.status === 429)
      return 'not evicted: its disruption budget does not allow it now'
    throw cause
  }
}
