import { asBuffer } from '../../base/bytes.ts'
import { parseJson } from '../../api/kube/json.ts'
import { objectAt } from '../../api/kube/json-at.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import type { KubeletCache } from './kubelet-cache.ts'

/** Discovery of all groups in one document, as kubectl accepts it since 1.30, and since 1.26. */
const aggregated = (version: 'v2' | 'v2beta1'): string =>
  `${mediaType('json')};g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,${mediaType('json')}`

/** The groups of the resources that a technician reads most on a node. */
const describedGroups = ['api/v1', 'apis/apps/v1', 'apis/batch/v1', 'apis/networking.k8s.io/v1']

/** The index of the schemas of all groups. */
export const schemaIndex = '/openapi/v3'

/**
 * The documents that kubectl reads before its actual request: discovery, the version, the index of
 * schemas, and in one document the schemas that an older kubectl reads.
 */
export const onSiteDocuments: readonly { readonly url: string; readonly accept: string }[] = [
  ...(['v2', 'v2beta1'] as const).flatMap((version) =>
    ['/api', '/apis'].map((url) => ({ url, accept: aggregated(version) })),
  ),
  { url: '/version', accept: mediaType('json') },
  { url: schemaIndex, accept: mediaType('json') },
  // An older kubectl requests each group from an API server without v2beta1.
  ...describedGroups.map((group) => ({ url: `/${group}`, accept: mediaType('json') })),
  // Of all groups, as a kubectl before 1.28 reads it to explain and to validate.
  { url: '/openapi/v2', accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' },
]

/** As `kubectl explain` reads a group's schema, and as `create` and `apply` do to validate. */
const schemaTypes = [
  mediaType('json'),
  'application/com.github.proto-openapi.spec.v3@v1.0+protobuf',
] as const

/** The most groups whose schemas are recorded, with their versions. */
export const mostSchemas = 128

/** A group and its version in the index: paths below these describe discovery only. */
const described = /^(?:api|apis\/[\w.-]+)\/v[\w]+$/

/**
 * The schemas of all groups that the recorded index names, in OpenAPI 3: those of the groups that
 * are looked at most come first. A new index is parsed once.
 */
export function schemasOf(): (cache: KubeletCache) => typeof onSiteDocuments {
  let last: { readonly confirmedAt: number; readonly schemas: typeof onSiteDocuments } | undefined
  return (cache) => {
    const index = cache.documents().find(({ url }) => url === schemaIndex)
    if (!index) return []
    if (last?.confirmedAt !== index.confirmedAt) {
      const body = cache.document(index)
      last = { confirmedAt: index.confirmedAt, schemas: body ? schemasIn(body) : [] }
    }
    return last.schemas
  }
}

function schemasIn(index: Uint8Array): typeof onSiteDocuments {
  const paths = objectAt(parseJson(asBuffer(index).toString()), 'paths')
  const names = Object.keys(paths).filter((name) => described.test(name))
  const first = describedGroups.filter((name) => names.includes(name))
  const groups = [...new Set([...first, ...names.toSorted()])].slice(0, mostSchemas)
  return groups.flatMap((group) =>
    schemaTypes.map((accept) => ({ url: `${schemaIndex}/${group}`, accept })),
  )
}
