import { mediaType, type Encoding, type Projection } from '../kube/media-type.ts'

declare const brand: unique symbol

/**
 * The media type of an answer together with its conversion. The `key` identifies the representation
 * in the store, in whatever order a client wrote the parameters.
 */
export interface Representation {
  readonly encoding: Encoding
  readonly projection: Projection
  readonly key: RepresentationKey
}

export type RepresentationKey = string & { readonly [brand]: 'RepresentationKey' }

/** One clause of an Accept header, in order of preference. */
export interface AcceptClause {
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
}

/**
 * Clauses by quality, then by how specific they are, then as written (goautoneg). No header accepts
 * everything.
 */
export function parseAccept(accept: string | undefined): AcceptClause[] {
  const clauses = (accept?.trim() ? accept : '*/*').split(',').flatMap((text, order) => {
    const [type = '', ...rest] = text.split(';').map((part) => part.trim())
    if (type === '') return []
    const parameters = new Map(
      rest.map((part) => {
        const equals = part.indexOf('=')
        return equals < 0
          ? [part.toLowerCase(), '']
          : [part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim()]
      }),
    )
    const quality = Number(parameters.get('q') ?? '1')
    parameters.delete('q')
    const specificity = type === '*/*' ? 0 : type.endsWith('/*') ? 1 : 2
    return [{ type: type.toLowerCase(), parameters, quality, specificity, order }]
  })
  return clauses
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality || b.specificity - a.specificity || a.order - b.order)
}

/**
 * Versions of meta.k8s.io, and what rows of a Table may carry: API servers know no others, and a
 * key of the store holds no other.
 */
const metaVersions = new Set(['v1', 'v1beta1'])
const includedKinds = new Set(['None', 'Metadata', 'Object'])

/** Encodings by the types of an Accept header. */
export const encodingOfType: Record<string, Encoding> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/** Clients write the same few headers over and over. */
const parsed = new Map<string, readonly Representation[]>()
const maxParsed = 256
const maxParsedKey = 512

/**
 * The representations that a client accepts, the preferred one first. Clauses with an unknown type
 * or conversion are left out: an empty list means that the hub reads nothing the client accepts.
 */
export function representationsOf(
  accept: string | undefined,
  query: URLSearchParams,
): readonly Representation[] {
  const included = query.get('includeObject') || 'Metadata'
  const key = `${included} ${accept ?? ''}`
  const known = parsed.get(key)
  if (known) return known
  const representations = parseAccept(accept).flatMap((clause) => {
    const encoding = encodingOfType[clause.type]
    const representation = encoding && representationOf(encoding, clause.parameters, included)
    return representation ? [representation] : []
  })
  if (parsed.size >= maxParsed) parsed.clear()
  if (key.length <= maxParsedKey) parsed.set(key, representations)
  return representations
}

function representationOf(
  encoding: Encoding,
  parameters: ReadonlyMap<string, string>,
  included: string,
): Representation | undefined {
  const as = parameters.get('as')
  if (as === undefined) return objectRepresentation(encoding)
  const version = parameters.get('v') ?? 'v1'
  if (parameters.get('g') !== 'meta.k8s.io' || !metaVersions.has(version)) return undefined
  if (as === 'Table' && encoding === 'json' && includedKinds.has(included)) {
    return {
      encoding,
      projection: 'table',
      key: `${encoding};table;${version};${included}` as RepresentationKey,
    }
  }
  if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    return {
      encoding,
      projection: 'metadata',
      key: `${encoding};metadata;${version}` as RepresentationKey,
    }
  }
  return undefined
}

/** That of the stored objects of such a representation. */
export const encodingOf = (key: RepresentationKey): Encoding =>
  key.startsWith('protobuf') ? 'protobuf' : 'json'

/** For people: `JSON`, `protobuf`, `table (JSON)`, `metadata (protobuf)`. */
export function representationText(key: string): string {
  const [encoding = '', projection] = key.split(';')
  const name = encoding === 'json' ? 'JSON' : encoding
  return projection === undefined ? name : `${projection} (${name})`
}

/**
 * The version of meta.k8s.io of a conversion, and what the rows of a Table carry of their objects.
 */
export function tableOptionsOf({ key }: Representation): {
  readonly version: string
  readonly included: string
} {
  const [, , version = 'v1', included = 'Metadata'] = key.split(';')
  return { version, included }
}

/**
 * The Accept header of a list or watch of a collection in this representation. API servers refuse a
 * list as PartialObjectMetadata, and a watch as its list.
 */
export function acceptFor(representation: Representation, verb: 'list' | 'watch'): string {
  const type = mediaType(representation.encoding)
  if (representation.projection === 'object') return type
  const kind = `PartialObjectMetadata${verb === 'list' ? 'List' : ''}`
  return `${type};as=${kind};v=${tableOptionsOf(representation).version};g=meta.k8s.io`
}

/** The whole object in an encoding, without a conversion. */
export const objectRepresentation = (encoding: Encoding): Representation => ({
  encoding,
  projection: 'object',
  key: encoding as string as RepresentationKey,
})
