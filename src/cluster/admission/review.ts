import { isObject, type Json, type JsonObject } from '../../api/kube/json.ts'
import { valueAt, objectAt, textAt, withAt } from '../../api/kube/json-at.ts'
import { isExcluded, isMirror } from '../../api/kube/pod.ts'
import { checkDepth } from '../../api/kube/patch/limits.ts'
import { badRequest, StatusError, type Status } from '../../api/kube/status.ts'
import { podsOf } from '../../node/lint/pod.ts'
import { warningsOf } from '../../node/lint/warnings.ts'
import { fieldsOf, poolVersions, storageVersion } from '../crd/node-pool-schema.ts'
import { jsonPatchBetween } from './json-patch.ts'
import type { ClusterLookup } from './lookup.ts'
import {
  mutateNodeUpdate,
  mutateNewNode,
  poolOfUpdate,
  poolOfNewNode,
  type MutationResult,
} from './node.ts'
import {
  defaultedPool,
  validateNewPool,
  validatePoolUpdate,
  validatePoolDeletion,
} from './node-pool.ts'
import { webhookPaths } from './paths.ts'
import { keptOffHostNetwork } from './pod.ts'
import { onHostNetworkOfPool } from './propagation.ts'

/** The cluster state and settings that admission depends on. */
export interface AdmissionOptions {
  readonly lookup: ClusterLookup
  /** Whether admission sets hostNetwork on pods whose pool has a host network. */
  readonly propagate: boolean
}

/** The members of an AdmissionRequest (admission.k8s.io/v1) that admission reads. */
interface AdmissionRequest {
  readonly uid: string
  readonly kind: string
  readonly operation: string
  readonly user: string
  readonly namespace: string
  /** The version in which the object was written, where the API server has converted it for us. */
  readonly writtenIn: string
  readonly object: JsonObject
  readonly old: JsonObject
}

/** The answer of a webhook; without an object it changes none. */
interface Answer extends Partial<MutationResult> {
  readonly refusal?: Status | undefined
}

interface Webhook {
  readonly kinds: readonly string[]
  readonly answer: (request: AdmissionRequest, rules: AdmissionOptions) => Answer | Promise<Answer>
}

const webhooks: ReadonlyMap<string, Webhook> = new Map([
  [webhookPaths.poolDefaults, { kinds: ['NodePool'], answer: poolDefaults }],
  [webhookPaths.poolRules, { kinds: ['NodePool'], answer: poolRules }],
  [webhookPaths.nodeDefaults, { kinds: ['Node'], answer: nodeDefaults }],
  [webhookPaths.podDefaults, { kinds: ['Pod'], answer: podDefaults }],
  [
    webhookPaths.workloadWarnings,
    {
      kinds: ['Deployment', 'DaemonSet', 'StatefulSet', 'Job', 'CronJob'],
      answer: workloadWarnings,
    },
  ],
])

/** Whether an AdmissionReview is answered at `path`. */
export const isAdmissionPath = (path: string): boolean => webhooks.has(path)

/**
 * Answers an AdmissionReview (v1) at one of `webhookPaths`. Rejects with a StatusError (400) for
 * anything else; a review with a uid that is malformed otherwise is refused in an AdmissionReview.
 * Rejects with other errors where admission itself fails: the webhook's failure policy decides
 * then.
 */
export async function reviewAdmission(
  path: string,
  review: Json,
  rules: AdmissionOptions,
): Promise<JsonObject> {
  const json = requestIn(review)
  const uid = textAt(json, 'uid')
  if (uid === '') throw new StatusError(badRequest('the AdmissionReview has no request with a uid'))
  const webhook = webhooks.get(path)
  const request = webhook && parseRequest(json, uid, webhook.kinds)
  if (webhook === undefined || request === undefined)
    return answered(uid, { refusal: senseless(path) })
  const answer = await webhook.answer(request, rules)
  const { object = request.object } = answer
  return answered(uid, answer, jsonPatchBetween(request.object, object))
}

function requestIn(review: Json): Json | undefined {
  checkDepth(review)
  const isReview =
    textAt(review, 'apiVersion') === 'admission.k8s.io/v1' &&
    textAt(review, 'kind') === 'AdmissionReview'
  if (!isReview)
    throw new StatusError(badRequest('this is no AdmissionReview of admission.k8s.io/v1'))
  return valueAt(review, 'request')
}

const senseless = (path: string): Status =>
  badRequest(`${path} got a request about an object of another kind, or about none`)

/** `undefined` where the request is about another kind than `kinds`, or names none. */
function parseRequest(
  request: Json | undefined,
  uid: string,
  kinds: readonly string[],
): AdmissionRequest | undefined {
  const kind = textAt(request, 'kind', 'kind')
  const operation = textAt(request, 'operation')
  const isUpdate = operation === 'UPDATE'
  const object = valueAt(request, 'object')
  const old = valueAt(request, 'oldObject')
  const needsObject = operation === 'CREATE' || isUpdate
  const needsOld = operation === 'DELETE' || isUpdate
  const isRight =
    (needsObject || needsOld) &&
    kinds.includes(kind) &&
    (isObject(object) || !needsObject) &&
    (isObject(old) || !needsOld)
  if (!isRight) return undefined
  return {
    uid,
    kind,
    operation,
    user: textAt(request, 'userInfo', 'username'),
    namespace: textAt(request, 'namespace'),
    writtenIn: textAt(request, 'requestKind', 'version') || textAt(request, 'kind', 'version'),
    object: isObject(object) ? object : {},
    old: isObject(old) ? old : {},
  }
}

function answered(
  uid: string,
  { refusal, warnings = [] }: Answer,
  patch: readonly unknown[] = [],
): JsonObject {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: refusal === undefined,
      ...(patch.length > 0 && {
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      }),
      ...(warnings.length > 0 && { warnings }),
      ...(refusal && { status: refusal as unknown as JsonObject }),
    },
  }
}

function poolDefaults(request: AdmissionRequest): Answer {
  const isNew = request.operation === 'CREATE'
  return { object: isNew ? defaultedPool(request.object) : keptOfOtherVersions(request) }
}

/**
 * Restores the fields that the version of the write does not have: its writer cannot have meant to
 * change them, even where the annotation that carries them was left out. A write of a pool never
 * changes its status either.
 */
function keptOfOtherVersions({ writtenIn, object, old }: AdmissionRequest): JsonObject {
  const version = poolVersions.find((version) => version === writtenIn)
  if (version === undefined || version === storageVersion) return object
  const foreign = Object.keys(fieldsOf[storageVersion].spec).filter(
    (name) => !Object.hasOwn(fieldsOf[version].spec, name),
  )
  const kept = foreign.reduce(
    (sum, name) => withAt(sum, ['spec', name], valueAt(old, 'spec', name)),
    object,
  )
  return withAt(kept, ['status'], valueAt(old, 'status'))
}

async function poolRules(
  { operation, object, old }: AdmissionRequest,
  rules: AdmissionOptions,
): Promise<Answer> {
  switch (operation) {
    case 'CREATE':
      return { refusal: validateNewPool(object) }
    case 'UPDATE':
      return { refusal: validatePoolUpdate(old, object) }
    default: {
      const nodes = await rules.lookup.poolNodes(textAt(old, 'metadata', 'name'))
      return { refusal: validatePoolDeletion(old, nodes) }
    }
  }
}

async function nodeDefaults(
  { operation, object, old }: AdmissionRequest,
  { lookup }: AdmissionOptions,
): Promise<Answer> {
  if (operation === 'CREATE') {
    const name = poolOfNewNode(object)
    return mutateNewNode(object, name === '' ? undefined : await lookup.pool(name))
  }
  if (operation !== 'UPDATE') return {}
  const name = poolOfUpdate(old, object)
  return mutateNodeUpdate(old, object, name === '' ? undefined : await lookup.pool(name))
}

async function podDefaults(
  { operation, object, namespace }: AdmissionRequest,
  { lookup, propagate }: AdmissionOptions,
): Promise<Answer> {
  if (operation !== 'CREATE' || isMirror(object)) return {}
  const [admitted, context] = await Promise.all([
    podAsItsPoolHasIt(object, lookup, propagate),
    lookup.context(namespace),
  ])
  const named = { ...admitted.object, metadata: { ...objectAt(object, 'metadata'), namespace } }
  return { ...admitted, warnings: [...admitted.warnings, ...warningsOf(named, context)] }
}

async function podAsItsPoolHasIt(
  object: JsonObject,
  lookup: ClusterLookup,
  propagate: boolean,
): Promise<MutationResult> {
  if (isExcluded(object)) return { object: keptOffHostNetwork(object), warnings: [] }
  return propagate ? onHostNetworkOfPool(object, lookup) : { object, warnings: [] }
}

/** Warns the author of a workload, who never sees the warnings about its pods. Refuses nothing. */
async function workloadWarnings(
  request: AdmissionRequest,
  rules: AdmissionOptions,
): Promise<Answer> {
  const { kind, object, namespace } = request
  const [context, templates] = await Promise.all([
    rules.lookup.context(namespace),
    rules.propagate ? templatesAsPodsAreAdmitted({ ...object, kind }, rules.lookup) : undefined,
  ])
  const written = templates?.object ?? object
  const named = { ...written, kind, metadata: { ...objectAt(written, 'metadata'), namespace } }
  // A pod of a DaemonSet gets the network of its node's pool, which the template does not name.
  const settled = rules.propagate && kind === 'DaemonSet' ? ['no-pod-network'] : []
  return { warnings: [...(templates?.warnings ?? []), ...warningsOf(named, context, settled)] }
}

/** An object with its templates as admission will have the pods that are made of them. */
async function templatesAsPodsAreAdmitted(
  object: JsonObject,
  lookup: ClusterLookup,
): Promise<MutationResult> {
  let admitted: MutationResult = { object, warnings: [] }
  for (const { base, metadata, spec } of podsOf(object)) {
    const pod = { metadata, spec }
    if (isExcluded(pod)) continue
    const { object: after, warnings } = await onHostNetworkOfPool(pod, lookup)
    admitted = {
      object: withAt(admitted.object, [...base.map(String), 'spec'], objectAt(after, 'spec')),
      warnings: [...admitted.warnings, ...warnings],
    }
  }
  return admitted
}
