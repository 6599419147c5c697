import { apiVersionOf, type GVK } from '../../kube/gvk.ts'
import { partialObjectMetadata, partialObjectMetadataList } from './meta.ts'
import type { MessageSchema } from './notation.ts'

export type { Field, FieldType, MessageSchema } from './notation.ts'

const kinds: Readonly<Record<string, readonly MessageSchema[]>> = {
  'meta.k8s.io/v1': [partialObjectMetadata, partialObjectMetadataList],
}

const schemas = new Map<string, MessageSchema>(
  Object.entries(kinds).flatMap(([apiVersion, messages]) =>
    messages.map((message) => [`${apiVersion} ${message.name}`, message] as const),
  ),
)

/** The message of a kind or of its list; `undefined` for kinds whose fields are not known here. */
export const schemaOf = (gvk: GVK): MessageSchema | undefined =>
  schemas.get(`${apiVersionOf(gvk)} ${gvk.kind}`)
