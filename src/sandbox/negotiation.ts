import { mediaType, type Encoding, type Projection } from '../api/kube/media-type.ts'
import { notAcceptable, onlyAcceptable, StatusError } from '../api/kube/status.ts'
import {
  encodingOfType,
  parseAccept,
  representationsOf,
  tableOptionsOf,
} from '../api/request/representation.ts'
import { isTrue } from '../api/request/request-info.ts'
import type { SeenRequest } from './requests.ts'

export interface ResponseFormat {
  readonly encoding: Encoding
  readonly projection: Projection
  /** Of meta.k8s.io, for Table and PartialObjectMetadata. */
  readonly version: string
  /** The object in each row of a Table. */
  readonly included: string
  readonly pretty: boolean
}

export interface Offer {
  readonly protobuf: boolean
  /** Whether there is a Table of it, and its metadata alone. */
  readonly conversions: boolean
}

const plainTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/**
 * The first acceptable representation, as apiserver pkg/endpoints/handlers/negotiation does it.
 * Throws a StatusError 406.
 */
export function negotiate(request: SeenRequest, offer: Offer): ResponseFormat {
  const accept = request.headers['accept'] as string | undefined
  const found = representationsOf(accept, request.query).find(
    ({ encoding, projection }) =>
      (encoding === 'json' || offer.protobuf) && (projection === 'object' || offer.conversions),
  )
  if (found) {
    const { encoding, projection } = found
    return { encoding, projection, ...tableOptionsOf(found), pretty: wantsPretty(request) }
  }
  const known = parseAccept(accept).some(({ type }) => encodingOfType[type] !== undefined)
  throw new StatusError((known ? onlyAcceptable : notAcceptable)(plainTypes))
}

const people = /^(curl|Wget|Mozilla\/5\.0)/

function wantsPretty({ query, headers }: SeenRequest): boolean {
  const pretty = query.get('pretty')
  return pretty === null ? people.test(String(headers['user-agent'])) : isTrue(pretty)
}

/** JSON without conversions, for answers that are not negotiated. */
export const plainJson = (request: SeenRequest): ResponseFormat => ({
  encoding: 'json',
  projection: 'object',
  version: 'v1',
  included: 'Metadata',
  pretty: wantsPretty(request),
})

export const contentTypeOf = ({ encoding }: ResponseFormat, stream = false): string =>
  mediaType(encoding, stream)
