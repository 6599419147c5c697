import type { Encoding, Shape } from '../kube/media-type.ts'

declare const brand: unique symbol

/**
 * Media type and conversion together: what one answer looks like. The `key` tells forms apart in
 * the store, whatever the order in which a client wrote the parameters.
 */
export interface Form {
  readonly encoding: Encoding
  readonly shape: Shape
  readonly key: FormKey
}

export type FormKey = string & { readonly [brand]: 'FormKey' }

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

const encodingOfType: Record<string, Encoding> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'application/vnd.kubernetes.protobuf': 'protobuf',
}

/** Clients write the same few headers over and over. */
const known = new Map<string, readonly Form[]>()
const mostKnown = 256
const longestKnown = 512

/**
 * The forms a client takes, most wanted first; clauses that name a conversion or type unknown here
 * are left out, so an empty list means that nothing this product reads is acceptable.
 */
export function formsOf(accept: string | undefined, query: URLSearchParams): readonly Form[] {
  const included = query.get('includeObject') || 'Metadata'
  const key = `${included} ${accept ?? ''}`
  const remembered = known.get(key)
  if (remembered) return remembered
  const forms = parseAccept(accept).flatMap((clause) => {
    const encoding = encodingOfType[clause.type]
    const form = encoding && formOf(encoding, clause.parameters, included)
    return form ? [form] : []
  })
  if (known.size >= mostKnown) known.clear()
  if (key.length <= longestKnown) known.set(key, forms)
  return forms
}

function formOf(
  encoding: Encoding,
  parameters: ReadonlyMap<string, string>,
  included: string,
): Form | undefined {
  const as = parameters.get('as')
  if (as === undefined) return objectForm(encoding)
  const version = parameters.get('v') ?? 'v1'
  if (parameters.get('g') !== 'meta.k8s.io' || !metaVersions.has(version)) return undefined
  if (as === 'Table' && encoding === 'json' && includedKinds.has(included)) {
    return { encoding, shape: 'table', key: `${encoding};table;${version};${included}` as FormKey }
  }
  if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    return { encoding, shape: 'metadata', key: `${encoding};metadata;${version}` as FormKey }
  }
  return undefined
}

/**
 * Whether an answer in this form shows of what object each of its parts is; rows of a Table do so
 * unless their client wants none.
 */
export const namesObjects = ({ shape, key }: Form): boolean =>
  shape !== 'table' || !key.endsWith(';None')

/** The whole object in an encoding, as clients that ask for no conversion get it. */
export const objectForm = (encoding: Encoding): Form => ({
  encoding,
  shape: 'object',
  key: encoding as string as FormKey,
})
