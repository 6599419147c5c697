import { mediaType, type Encoding, type Projection } from '../api/kube/media-type.ts'
import { notAcceptable, onlyAcceptable, StatusError } from '../api/kube/status.ts'
import { parseAccept, type AcceptClause } from '../api/request/representation.ts'
import { isTrue } from '../api/request/request-info.ts'
import type { SeenRequest } from './requests.ts'

export interface ResponseFormat {
  readonly encoding: Encoding
  readonly projection: Projection
  /** Of meta.k8s.io, for Table and PartialObjectMetadata. */
  readonly version: string
  /** The object in each row of a Table. */
  readonly include: 'None' | 'Metadata' | 'Object'
  readonly pretty: boolean
}

export interface Offer {
  readonly protobuf: boolean
  /** Whether there is a Table of it, and its metadata alone. */
  readonly conversions: boolean
  /** The refusal for custom resources has other words. */
  readonly custom: boolean
  /** Whether there are watches of it. */
  readonly streams?: boolean
}

const encodings: Record<string, Encoding> = {
  'application/json': 'json',
  'application/vnd.kubernetes.protobuf': 'protobuf',
  'application/*': 'json',
  '*/*': 'json',
}

const plainTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']
const streamTypes = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
]

/**
 * The first acceptable clause, as apiserver pkg/endpoints/handlers/negotiation does it. Throws a
 * StatusError 406.
 */
export function negotiate(request: SeenRequest, offer: Offer): ResponseFormat {
  const clauses = parseAccept(request.headers['accept'] as string | undefined)
  for (const clause of clauses) {
    const found = accepted(clause, request, offer)
    if (found) return found
  }
  const known = clauses.some(({ type }) => encodings[type] !== undefined)
  throw new StatusError(
    known || offer.custom
      ? onlyAcceptable(plainTypes)
      : notAcceptable(offer.streams === true ? [...plainTypes, ...streamTypes] : plainTypes),
  )
}

function accepted(
  clause: AcceptClause,
  request: SeenRequest,
  offer: Offer,
): ResponseFormat | undefined {
  const encoding = encodings[clause.type]
  if (!encoding || (encoding === 'protobuf' && !offer.protobuf)) return undefined
  const projection = shapeOf(clause, encoding, offer)
  return (
    projection && {
      encoding,
      projection,
      version: clause.parameters.get('v') ?? 'v1',
      include: included(request.query.get('includeObject')),
      pretty: wantsPretty(request),
    }
  )
}

function shapeOf(
  { parameters }: AcceptClause,
  encoding: Encoding,
  offer: Offer,
): Projection | undefined {
  const as = parameters.get('as')
  if (as === undefined) return 'object'
  if (!offer.conversions || parameters.get('g') !== 'meta.k8s.io') return undefined
  if (!['v1', 'v1beta1'].includes(parameters.get('v') ?? '')) return undefined
  if (as === 'Table') return encoding === 'protobuf' ? undefined : 'table'
  return as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList'
    ? 'metadata'
    : undefined
}

const included = (text: string | null): ResponseFormat['include'] =>
  text === 'None' || text === 'Object' ? text : 'Metadata'

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
  include: 'Metadata',
  pretty: wantsPretty(request),
})

export const contentTypeOf = ({ encoding }: ResponseFormat, stream = false): string =>
  mediaType(encoding, stream)
