import type { Exchange } from '../../http/exchange/exchange.ts'
import { impersonates } from '../../http/exchange/headers.ts'
import type { OnUnpacked } from '../../http/exchange/unpacked.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import { areUnderstood } from '../../api/request/list-options.ts'
import {
  isAnsweredByBody,
  isReview,
  type NonResourceRequest,
  type ResourceRequest,
} from '../../api/request/request-info.ts'
import { selectorsOf } from '../answers/keys.ts'
import type { ObjectOfKind } from '../../api/codec/object.ts'

/**
 * The recordable part of an exchange: an object, a collection by list or watch, an event that the
 * node has written, a document, or a token or review with its request.
 */
export type Recordable =
  | { readonly kind: 'object' | 'list' | 'event'; readonly info: ResourceRequest }
  | { readonly kind: 'watch'; readonly info: ResourceRequest }
  | { readonly kind: 'document' }
  | { readonly kind: 'token' | 'review'; readonly info: ResourceRequest; readonly content: Buffer }

/** The reports of the recorder. No failure keeps an answer from its client. */
export interface RecorderHooks {
  /** The number of what was recorded of a kind, which the recorder increments. */
  readonly countOf: (kind: Recordable['kind']) => { amount: number }
  /** The store failed; the client was answered all the same. */
  readonly onStoreFailure: (cause: unknown) => void
  /** An answer could not be parsed. */
  readonly onMalformed: (cause: unknown, exchange: Exchange) => void
  /** An API server has accepted an event of the node. */
  readonly onEvent: (gvr: GVR, encoding: Encoding, event: ObjectOfKind) => void
  readonly onUnpacked: OnUnpacked
}

/**
 * Writes whose answer is recorded like a read: a kubelet creates these objects once and reads them
 * when it restarts, perhaps offline. Leases are renewed all the time, and only have to exist.
 */
const writesKept = new Set([
  'create nodes',
  'create csinodes.storage.k8s.io',
  'update csinodes.storage.k8s.io',
  'create leases.coordination.k8s.io',
])

/** The hub shows those that the node writes to a person there. */
const events = new Set(['events', 'events.events.k8s.io'])

/**
 * Resources that the hub never records: a stored certificate signing request is of no use to a
 * kubelet that waits for its certificate.
 */
const neverKept = new Set(['certificatesigningrequests.certificates.k8s.io'])

/** Without escapes, by which a caller could write one path in many ways. */
const documentPaths = /^\/(?:api|apis|version|openapi)(?:\/[\w.-]+){0,6}$/

/**
 * The most characters of the parts of a key that a caller chooses: the path of a document, a name,
 * a namespace, both selectors together. Answers to longer ones are not recorded; the API server's
 * own names and paths are shorter.
 */
export const longestPath = 512
export const longestName = 512
export const longestSelectors = 4_096

/** The recordable part of the answer to `exchange`; `undefined`: there is none. */
export function recordable(exchange: Exchange): Recordable | undefined {
  if (exchange.upgrade || impersonates(exchange.headers)) return undefined
  const { info, content } = exchange
  if (info.isResource && !areUnderstood(info.query)) return undefined
  if (isAnsweredByBody(info)) {
    const isKept =
      content !== undefined && exchange.representations.length > 0 && !info.query.has('dryRun')
    if (!isKept) return undefined
    // Of a review only the status is kept.
    if (isReview(info)) return { kind: 'review', info, content }
    return isIndented(exchange) ? undefined : { kind: 'token', info, content }
  }
  if (!info.isResource) {
    return exchange.method === 'GET' && isDocument(info) ? { kind: 'document' } : undefined
  }
  if (
    exchange.method === 'HEAD' ||
    exchange.representations.length === 0 ||
    info.subresource !== undefined ||
    isIndented(exchange)
  ) {
    return undefined
  }
  if (neverKept.has(qualifiedResource(info.gvr)) || isTooLong(info)) return undefined
  switch (info.verb) {
    case 'get':
      return { kind: 'object', info }
    case 'list':
    case 'watch':
      // A name in the path of a watch that also has a field selector is not part of a collection's
      // key.
      if (info.name !== undefined) return undefined
      // A further page is no whole collection.
      if (info.query.get('continue')) return undefined
      // People watch Tables: these watches end with the link.
      if (info.verb === 'watch' && exchange.representations[0]?.projection === 'table')
        return undefined
      return selectorsCanBeKept(info) ? { kind: info.verb, info } : undefined
    case 'create':
    case 'update':
    case 'patch': {
      // That another caller may write an object is no right to read it.
      if (info.query.has('dryRun') || exchange.credential !== 'node') return undefined
      const resource = qualifiedResource(info.gvr)
      if (events.has(resource)) return { kind: 'event', info }
      return writesKept.has(`${info.verb} ${resource}`) ? { kind: 'object', info } : undefined
    }
    default:
      return undefined
  }
}

/**
 * API servers indent answers for people, and for some programs by default (apiserver
 * pkg/endpoints/handlers/negotiation): these pass unchanged.
 */
const isIndented = ({ info, headers }: Exchange): boolean =>
  info.query.has('pretty') ||
  /;\s*pretty/i.test(headers.get('accept') ?? '') ||
  /^(curl|wget|mozilla\/5\.0)/i.test(headers.get('user-agent') ?? '')

/** Parameters of documents that are not part of their keys; others may change the answer. */
const documentParameters = new Set(['timeout', 'hash'])

const isDocument = ({ path, query, ambiguous }: NonResourceRequest): boolean =>
  ambiguous !== true &&
  path.length <= longestPath &&
  documentPaths.test(path) &&
  [...query.keys()].every((name) => documentParameters.has(name))

const isTooLong = ({ name = '', namespace = '' }: ResourceRequest): boolean =>
  name.length > longestName || namespace.length > longestName

/** False where the selectors are malformed or too long. */
function selectorsCanBeKept(info: ResourceRequest): boolean {
  try {
    const { labelSelector, fieldSelector } = selectorsOf(info)
    return labelSelector.length + fieldSelector.length <= longestSelectors
  } catch (error) {
    if (error instanceof MalformedSelector) return false
    throw error
  }
}
