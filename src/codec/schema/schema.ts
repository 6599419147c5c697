import { apiVersionOf, parseApiVersion, type GVK } from '../../kube/gvk.ts'
import { tokenRequest, tokenReview } from './authentication.ts'
import { subjectAccessReview } from './authorization.ts'
import { persistentVolumeClaim } from './claim.ts'
import { lease } from './coordination.ts'
import { configMap, event, namespace, secret, serviceAccount } from './core.ts'
import { endpointSlice, endpointSliceBeta } from './discovery.ts'
import { event as newerEvent } from './events.ts'
import { apiResourceList, deleteOptions, listMeta, partialObjectMetadata, status } from './meta.ts'
import { node } from './node.ts'
import { listOf, type MessageSchema } from './notation.ts'
import { persistentVolume } from './persistent-volume.ts'
import { pod } from './pod.ts'
import { runtimeClass } from './runtime-class.ts'
import { endpoints, service } from './service.ts'
import { csiDriver, csiNode, volumeAttachment } from './storage.ts'

export type { Field, FieldType, MessageSchema } from './notation.ts'

const core = [
  pod,
  node,
  service,
  endpoints,
  configMap,
  secret,
  event,
  namespace,
  serviceAccount,
  persistentVolumeClaim,
  persistentVolume,
]

const withLists = (schemas: readonly MessageSchema[]): readonly MessageSchema[] =>
  schemas.flatMap((schema) => [schema, listOf(listMeta, schema)])

const kinds: Readonly<Record<string, readonly MessageSchema[]>> = {
  v1: [...withLists(core), status, apiResourceList],
  // The discovery of the core group is older than versions of discovery.
  '': [apiResourceList],
  'meta.k8s.io/v1': withLists([partialObjectMetadata]),
  'meta.k8s.io/v1beta1': withLists([partialObjectMetadata]),
  'discovery.k8s.io/v1': withLists([endpointSlice]),
  'discovery.k8s.io/v1beta1': withLists([endpointSliceBeta]),
  'events.k8s.io/v1': withLists([newerEvent]),
  'coordination.k8s.io/v1': withLists([lease]),
  'storage.k8s.io/v1': withLists([csiNode, csiDriver, volumeAttachment]),
  'node.k8s.io/v1': withLists([runtimeClass]),
  'authentication.k8s.io/v1': [tokenRequest, tokenReview],
  'authorization.k8s.io/v1': [subjectAccessReview],
}

const schemas = new Map<string, MessageSchema>(
  Object.entries(kinds).flatMap(([apiVersion, messages]) =>
    messages.map((message) => [`${apiVersion} ${message.name}`, message] as const),
  ),
)

/** The message of a kind or of its list; `undefined` for kinds whose fields are not known here. */
export function schemaOf(gvk: GVK): MessageSchema | undefined {
  // Clients write these options in the group and version of what they delete.
  if (gvk.kind === deleteOptions.name) return deleteOptions
  return schemas.get(`${apiVersionOf(gvk)} ${gvk.kind}`)
}

/**
 * The kinds that are known here of a resource, whichever their versions; none where its fields are
 * not known.
 */
export const kindsOf = (group: string, resource: string): readonly GVK[] =>
  Object.entries(kinds).flatMap(([apiVersion, messages]) => {
    const groupVersion = parseApiVersion(apiVersion)
    if (groupVersion.group !== group) return []
    return messages
      .filter(({ name, fields }) => 'metadata' in fields && resourceOf(name) === resource)
      .map(({ name }) => ({ ...groupVersion, kind: name }))
  })

/**
 * As apimachinery guesses it (pkg/api/meta/restmapper.go, UnsafeGuessKindToResource), which is
 * right for all kinds that are known here.
 */
function resourceOf(kind: string): string {
  const word = kind.toLowerCase()
  if (word === 'endpoints') return word
  if (word.endsWith('s')) return `${word}es`
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`
}
