import type { TokenSpec } from '../../api/codec/token-request.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { pathOf } from '../../api/kube/resources.ts'
import { canonicalFieldSelector, canonicalLabelSelector } from '../../api/kube/selectors.ts'
import { documentTypeOf, documentTypesOf } from '../../api/request/document-type.ts'
import type { Representation, RepresentationKey } from '../../api/request/representation.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import { tokenResource, tokenName } from '../store/token-name.ts'
import { documentAt } from '../store/document.ts'
import type { Partition, CollectionKey, ObjectKey } from '../store/store.ts'

/**
 * The selectors of a list or watch; selectors that mean the same have the same text. Throws
 * `MalformedSelector`.
 */
export function selectorsOf({ query }: ResourceRequest): {
  labelSelector: string
  fieldSelector: string
} {
  return {
    labelSelector: canonicalLabelSelector(query.get('labelSelector') ?? ''),
    fieldSelector: canonicalFieldSelector(query.get('fieldSelector') ?? ''),
  }
}

const partitionOf = ({ identity }: Exchange, representation: RepresentationKey): Partition => ({
  identity,
  representation,
})

/** The key of the collection that a list or watch covers. Throws `MalformedSelector`. */
export function collectionKey(
  exchange: Exchange,
  info: ResourceRequest,
  representation: Representation,
): CollectionKey {
  return {
    partition: partitionOf(exchange, representation.key),
    gvr: info.gvr,
    ...(info.namespace !== undefined && { namespace: info.namespace }),
    ...selectorsOf(info),
  }
}

/** The key of the object that a get names, by which lists in this representation hold it, too. */
export const objectKey = (
  exchange: Exchange,
  { gvr, namespace = '', name = '' }: ResourceRequest,
  representation: Representation,
): ObjectKey => ({
  partition: partitionOf(exchange, representation.key),
  gvr,
  namespace,
  name,
})

/** The resource under which Tables of a resource are stored, as documents. No path leads to it. */
export const tablesOf = (gvr: GVR): GVR => ({ ...gvr, resource: `${gvr.resource}/table` })

/**
 * The key of the Table that a caller was last given for this get or list, whatever the limit;
 * `undefined` for a further page and for one at a version, which the last one need not have.
 */
export function tableKey(
  exchange: Exchange,
  info: ResourceRequest,
  representation: Representation,
): ObjectKey | undefined {
  const { gvr, verb, namespace, name, query } = info
  const version = query.get('resourceVersion')
  if (query.get('continue') || (version && version !== '0')) return undefined
  if (verb !== 'get' && verb !== 'list') return undefined
  const selectors = verb === 'list' ? `?${new URLSearchParams(selectorsOf(info))}` : ''
  return {
    partition: partitionOf(exchange, representation.key),
    gvr: tablesOf(gvr),
    namespace: '',
    name: pathOf(gvr, namespace, name) + selectors,
  }
}

/** The key of the answer to a token request. */
export function tokenKey(
  exchange: Exchange,
  info: ResourceRequest,
  representation: Representation,
  spec: TokenSpec,
): ObjectKey {
  return {
    partition: partitionOf(exchange, representation.key),
    gvr: tokenResource,
    namespace: info.namespace ?? '',
    name: tokenName({ serviceAccount: info.name ?? '', ...spec }),
  }
}

/**
 * Documents that API servers write in JSON, whatever the client accepts; the index of OpenAPI as
 * `text/plain`.
 */
const writtenInJson = new Set(['/version', '/openapi/v3'])

/**
 * The keys of a document in each representation that the client accepts, most preferred first. The
 * query is not part of the key: clients put a timeout into it, and the hash of the OpenAPI document
 * they expect, and neither changes the document.
 */
export function documentKeys({ identity, info, headers }: Exchange): readonly ObjectKey[] {
  const accept = writtenInJson.has(info.path) ? mediaType('json') : headers.get('accept')
  return documentTypesOf(accept).map((type) => documentAt(identity, info.path, type))
}

/**
 * The key of the document that an API server sent; `undefined` where the client does not accept its
 * content type, or the hub does not know it.
 */
export function documentKey(exchange: Exchange, contentType: string): ObjectKey | undefined {
  const type: string | undefined = documentTypeOf(
    writtenInJson.has(exchange.info.path) ? mediaType('json') : contentType,
  )
  return documentKeys(exchange).find(({ partition }) => partition.representation === type)
}
