import { mediaType } from '../../api/kube/media-type.ts'

/** Discovery of all groups in one document, as kubectl accepts it since 1.30, and since 1.26. */
const aggregated = (version: 'v2' | 'v2beta1'): string =>
  `${mediaType('json')};g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,${mediaType('json')}`

/** The groups of the resources that a technician reads most on a node. */
export const describedGroups = [
  'api/v1',
  'apis/apps/v1',
  'apis/batch/v1',
  'apis/networking.k8s.io/v1',
]

/** The index of the schemas of all groups (see `RecordedSchemas`). */
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
