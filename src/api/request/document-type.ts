import { mediaType } from '../kube/media-type.ts'
import { encodingOfType, parseAccept, type AcceptClause } from './representation.ts'

declare const brand: unique symbol

/**
 * The representation of a document (discovery, OpenAPI, version), as clients name it. The set is
 * small, so that no client can fill the store with names of the same answer.
 */
export type DocumentType = string & { readonly [brand]: 'DocumentType' }

/** OpenAPI in protobuf. API servers answer the deprecated name, with an `@`, with the other. */
const openApi = /^application\/com\.github\.proto-openapi\.spec\.(v[23])[.@]v1\.0\+protobuf$/

/** Versions of aggregated discovery. */
const aggregated = new Set(['v2', 'v2beta1'])

/** The representations in an Accept header, the preferred one first, without unknown ones. */
export const documentTypesOf = (accept: string | undefined): readonly DocumentType[] => [
  ...new Set(parseAccept(accept).flatMap((clause) => typeOf(clause) ?? [])),
]

/** The representation of an answer; `undefined` if it is unknown. */
export function documentTypeOf(contentType: string | undefined): DocumentType | undefined {
  const [clause, ...others] = contentType === undefined ? [] : parseAccept(contentType)
  return clause && others.length === 0 ? typeOf(clause) : undefined
}

function typeOf({ type, parameters }: AcceptClause): DocumentType | undefined {
  const spec = openApi.exec(type)?.[1]
  if (spec !== undefined) {
    return `application/com.github.proto-openapi.spec.${spec}.v1.0+protobuf` as DocumentType
  }
  const encoding = encodingOfType[type]
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
