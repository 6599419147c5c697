import type { Projection } from '../api/kube/media-type.ts'
import { notAcceptable, onlyAcceptable, StatusError } from '../api/kube/status.ts'
import { parseAccept, type AcceptClause } from '../api/request/representation.ts'
import { isTrue } from '../api/request/request-info.ts'

export interface Representation {
  readonly encoding: 'json' | 'yaml' | 'protobuf'
  readonly projection: Projection
  /** Of meta.k8s.io, for Table and PartialObjectMetadata. */
  readonly version: string
  /** What a Table's rows carry. */
  readonly include: 'None' | 'Metadata' | 'Object'
  readonly pretty: boolean
}

export interface Offer {
  readonly protobuf: boolean
  /** Whether there is a Table of it, and its metadata alone. */
  readonly conversions: boolean
  /** Custom resources word their refusal otherwise. */
  readonly custom: boolean
  /** Whether there are watches of it. */
  readonly streams?: boolean
}

const encodings: Record<string, Representation['encoding']> = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
  'application/*': 'json',
  '*/*': 'json',
}

const plainTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']
const streamTypes = [
  'application/json;stream=watch',
  'application/vnd.kubernetes.protobuf;stream=watch',
]

export interface Asking {
  readonly accept: string | undefined
  readonly userAgent: string | undefined
  readonly query: URLSearchParams
}

/**
 * The first acceptable clause, as apiserver pkg/endpoints/handlers/negotiation does it. Throws a
 * StatusError 406.
 */
export function negotiate(asking: Asking, offer: Offer): Representation {
  const clauses = parseAccept(asking.accept)
  for (const clause of clauses) {
    const found = accepted(clause, asking, offer)
    if (found) return found
  }
  const known = clauses.some(({ type }) => encodings[type] !== undefined)
  throw new StatusError(
    known || offer.custom
      ? onlyAcceptable(plainTypes)
      : notAcceptable(offer.streams === true ? [...plainTypes, ...streamTypes] : plainTypes),
  )
}

function accepted(clause: AcceptClause, asking: Asking, offer: Offer): Representation | undefined {
  const encoding = encodings[clause.type]
  if (!encoding || (encoding === 'protobuf' && !offer.protobuf)) return undefined
  const projection = shapeOf(clause, encoding, offer)
  return (
    projection && {
      encoding,
      projection,
      version: clause.parameters.get('v') ?? 'v1',
      include: included(asking.query.get('includeObject')),
      pretty: wantsPretty(asking),
    }
  )
}

function shapeOf(
  { parameters }: AcceptClause,
  encoding: Representation['encoding'],
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

const included = (text: string | null): Representation['include'] =>
  text === 'None' || text === 'Object' ? text : 'Metadata'

const people = /^(curl|Wget|Mozilla\/5\.0)/

function wantsPretty({ query, userAgent }: Asking): boolean {
  const asked = query.get('pretty')
  return asked === null ? people.test(userAgent ?? '') : isTrue(asked)
}

/** JSON without conversions, for what is not negotiated. */
export const plainJson = (asking: Asking): Representation => ({
  encoding: 'json',
  projection: 'object',
  version: 'v1',
  include: 'Metadata',
  pretty: wantsPretty(asking),
})

export const contentTypeOf = ({ encoding }: Representation, stream = false): string =>
  encoding === 'protobuf'
    ? `application/vnd.kubernetes.protobuf${stream ? ';stream=watch' : ''}`
    : encoding === 'yaml'
      ? 'application/yaml'
      : 'application/json'
