import { mediaType, type Encoding } from '../kube/media-type.ts'
import { parseAccept, type AcceptClause } from './representation.ts'

declare const brand: unique symbol

/**
 * A representation of a document (discovery, OpenAPI, version), spelled as a client asks for it.
 * There are few of them, so that no client can fill the store with spellings of the same answer.
 */
export type DocumentType = string & { readonly [brand]: 'DocumentType' }

const encodings: Record<string, Encoding> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/**
 * OpenAPI in protobuf. API servers answer the deprecated spelling, which has an `@`, with the other
 * one.
 */
const openApi = /^application\/com\.github\.proto-openapi\.spec\.(v[23])[.@]v1\.0\+protobuf$/

/** Versions of aggregated discovery. */
const aggregated = new Set(['v2', 'v2beta1'])

/**
 * The representations that an Accept header names, most wanted first; those that the hub does not
 * know are left out.
 */
export const documentTypesOf = (accept: string | undefined): readonly DocumentType[] => [
  ...new Set(parseAccept(accept).flatMap((clause) => typeOf(clause) ?? [])),
]

/** The representation of an answer; `undefined` where the hub does not know it. */
export function documentTypeOf(contentType: string | undefined): DocumentType | undefined {
  const [clause, ...others] = contentType === undefined ? [] : parseAccept(contentType)
  return clause && others.length === 0 ? typeOf(clause) : undefined
}

function typeOf({ type, parameters }: AcceptClause): DocumentType | undefined {
  const spec = openApi.exec(type)?.[1]
  if (spec !== undefined) {
    return `application/com.github.proto-openapi.spec.${spec}.v1.0+protobuf` as DocumentType
  }
  const encoding = encodings[type]
  if (encoding === undefined) return undefined
  const as = parameters.get('as')
  if (as === undefined) return mediaType(encoding) as DocumentType
  const version = parameters.get('v') ?? ''
  const isKnown =
    as === 'APIGroupDiscoveryList' &&
    parameters.get('g') === 'apidiscovery.k8s.io' &&
    aggregated.has(version) &&
    !parameters.has('profile')
  if (!isKnown) return undefined
  return `${mediaType(encoding)};g=apidiscovery.k8s.io;v=${version};as=${as}` as DocumentType
}
