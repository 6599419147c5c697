import { kindsOf, partialObjectMetadata, schemaOf } from '../../../api/codec/schema/schema.ts'
import { parseApiVersion, type GVK } from '../../../api/kube/gvk.ts'
import type { Cursor, FilterRule } from '../filter.ts'
import { any, type Shape } from '../cel/shape.ts'

/**
 * The groups that API servers serve themselves, in protobuf as well (pkg/controlplane/instance.go
 * and the servers beside it, 1.36).
 */
const builtInGroups = new Set([
  '',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'extensions',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
])

/** The shapes of the objects of one resource. */
export interface ResourceShapes {
  /** `services`, `ingresses.networking.k8s.io`. */
  readonly resource: string
  /**
   * One for each version. A custom resource has one without a schema, since it is served in JSON
   * only.
   */
  readonly versions: readonly {
    readonly gvk: GVK
    readonly shape: Shape
    readonly inProtobuf: boolean
  }[]
}

export function resourceShapes({
  group,
  resources,
}: Pick<FilterRule, 'group' | 'resources'>): ResourceShapes[] {
  return resources.map((resource) => ({
    resource: group === '' ? resource : `${resource}.${group}`,
    versions: versionsOf(group, resource),
  }))
}

/**
 * Whether an object is one of these resources, and not other content of an answer, such as the
 * Status of a deletion.
 */
export function isOfResources(objects: readonly ResourceShapes[]): (cursor: Cursor) => boolean {
  const kinds = new Set(
    objects.flatMap(({ versions }) =>
      versions.map(({ gvk: { group, kind } }) => `${group} ${kind}`),
    ),
  )
  const others = objects.some(({ versions }) =>
    versions.some(({ gvk }) => gvk.kind === unknownKind),
  )
  return ({ kind, apiVersion }) => {
    const { group } = parseApiVersion(apiVersion)
    if (kind === 'PartialObjectMetadata' && group === 'meta.k8s.io') return true
    return kinds.has(`${group} ${kind}`) || (others && !(kind === 'Status' && group === ''))
  }
}

const unknownKind = 'Unknown'

function versionsOf(group: string, resource: string): ResourceShapes['versions'] {
  const known = kindsOf(group, resource).flatMap((gvk) => {
    const schema = schemaOf(gvk)
    return schema ? [{ gvk, shape: { kind: 'message' as const, schema }, inProtobuf: true }] : []
  })
  if (known.length > 0) return known
  const gvk = { group, version: 'v1', kind: unknownKind }
  // All built-in kinds have the same metadata.
  return builtInGroups.has(group)
    ? [{ gvk, shape: { kind: 'message', schema: partialObjectMetadata }, inProtobuf: true }]
    : [{ gvk, shape: any, inProtobuf: false }]
}
