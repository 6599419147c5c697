import { qualifiedResource, type GVR } from '../kube/gvk.ts'
import { selectorOfName } from '../kube/selectors.ts'

export type ResourceVerb =
  'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** The meaning of a request, as apiserver pkg/endpoints/request/requestinfo.go derives it. */
export type RequestInfo = ResourceRequest | NonResourceRequest

export interface NonResourceRequest {
  readonly isResource: false
  readonly path: string
  /** The HTTP method in lower case. */
  readonly verb: string
  readonly query: URLSearchParams
  /**
   * Two parsers could read the path differently: it passes unchanged, and the hub derives nothing
   * from it.
   */
  readonly ambiguous?: true
}

export interface ResourceRequest {
  readonly isResource: true
  readonly path: string
  readonly verb: ResourceVerb
  readonly gvr: GVR
  readonly namespace?: string
  /**
   * From the path only; a `metadata.name` field selector stays a selector (see `namedBySelector`).
   * For a watch only if the query has another field selector.
   */
  readonly name?: string
  readonly subresource?: string
  /**
   * As sent; but a name in the path of a watch (deprecated) becomes the field selector that an API
   * server makes of it.
   */
  readonly query: URLSearchParams
}

const verbOfMethod: Record<string, ResourceVerb> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** Subresources of a namespace; any other second segment under a namespace is a resource in it. */
const namespaceSubresources = new Set(['status', 'finalize'])

export class MalformedPath extends Error {
  readonly code = 'MALFORMED_PATH'
}

/**
 * Parses path and query. A path that is not under `/api/<version>/` or `/apis/<group>/<version>/`
 * with at least a resource is a non-resource request. So is one that two parsers could read
 * differently, marked as ambiguous: with NUL, a `.` or `..` segment, invalid UTF-8, or an encoded
 * slash or empty segment before the end of a subresource; or with a query that API servers read in
 * part. Throws `MalformedPath` if API servers reject the target too: a bad escape, or no path (RFC
 * 9112 section 3.2 has three more kinds of targets).
 */
export function parseRequestInfo(method: string, url: string): RequestInfo {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const search = mark < 0 ? '' : url.slice(mark + 1)
  const query = new URLSearchParams(search)
  const segments = split(path)
  const verb = verbOfMethod[method]
  const [prefix] = segments ?? []
  let at = prefix === 'api' ? 1 : 2
  const isUnderApi = verb !== undefined && (prefix === 'api' || prefix === 'apis')
  // The version, and at least a resource.
  if (!segments || !isUnderApi || segments.length < at + 2) {
    const ambiguous = !segments || !areClear(segments, segments.length)
    const info = { isResource: false, path, verb: method.toLowerCase(), query } as const
    return ambiguous ? { ...info, ambiguous } : info
  }
  const [group, version] = [prefix === 'api' ? '' : (segments[1] ?? ''), segments[at] ?? '']
  at += 1
  let legacyWatch = false
  if (segments[at] === 'watch' && segments.length > at + 1) {
    legacyWatch = true // /api/v1/watch/pods: deprecated, still served
    at += 1
  }
  let namespace: string | undefined
  const isInNamespace = segments[at] === 'namespaces' && segments.length > at + 2
  if (isInNamespace && !namespaceSubresources.has(segments[at + 2] ?? '')) {
    namespace = segments[at + 1]
    at += 2
  }
  const [resource, name, subresource] = [segments[at] ?? '', segments[at + 1], segments[at + 2]]
  const isClear = areClear(segments, at + 3) && (subresource !== undefined || isReadWhole(search))
  if (!isClear)
    return { isResource: false, path, verb: method.toLowerCase(), query, ambiguous: true }
  const refined = refine(verb, name, query, legacyWatch)
  const isNamedWatch = refined === 'watch' && name !== undefined && subresource === undefined
  const isSelector = isNamedWatch && !query.get('fieldSelector')
  if (isSelector) query.set('fieldSelector', selectorOfName(name))
  return {
    isResource: true,
    path,
    verb: refined,
    gvr: { group, version, resource },
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && !isSelector && { name }),
    ...(subresource !== undefined && { subresource }),
    query,
  }
}

/**
 * The unescaped segments between slashes, without an empty last one. `undefined` if one is
 * ambiguous.
 */
function split(path: string): string[] | undefined {
  if (!path.startsWith('/')) throw new MalformedPath('the target of the request is not a path')
  const segments = path.slice(1).split('/')
  if (segments.at(-1) === '') segments.pop()
  if (!path.includes('%') && !path.includes('\0')) {
    return segments.includes('.') || segments.includes('..') ? undefined : segments
  }
  if (/%(?![0-9a-f]{2})/i.test(path)) throw new MalformedPath('the path has a bad escape')
  const plain: string[] = []
  for (const segment of segments) {
    const decoded = segment.includes('%') ? decode(segment) : segment
    if (decoded === undefined || decoded === '.' || decoded === '..') return undefined
    if (decoded.includes('\0')) return undefined
    plain.push(decoded)
  }
  return plain
}

/** Whether each of the first `count` segments can be read in one way only. */
function areClear(segments: readonly string[], count: number): boolean {
  for (let i = 0; i < segments.length && i < count; i++)
    if (segments[i] === '' || segments[i]?.includes('/')) return false
  return true
}

/** More parameters than any client has: API servers drop the whole query of 10,001. */
const mostParameters = 1_000

/**
 * Whether API servers read the parameters as `URLSearchParams` does: they drop one with a semicolon
 * or a bad escape (Go's url.ParseQuery), and take a second question mark for a part of the name. By
 * a selector that only the hub reads, what is stored under it would be another collection.
 */
const isReadWhole = (search: string): boolean =>
  search === '' ||
  (!/^\?|;|%(?![0-9a-f]{2})/i.test(search) && search.split('&').length <= mostParameters)

/** `undefined` for escapes that are not UTF-8. */
function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function refine(
  verb: ResourceVerb,
  name: string | undefined,
  query: URLSearchParams,
  legacyWatch: boolean,
): ResourceVerb {
  if (verb === 'delete' && name === undefined) return 'deletecollection'
  if (verb !== 'get') return verb
  if (legacyWatch) return 'watch'
  if (name !== undefined) return 'get'
  return isTrue(query.get('watch')) ? 'watch' : 'list'
}

/**
 * Any value but `0` and `false`, including an empty one (apimachinery pkg/runtime/conversion.go).
 */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/** The name in the field selector of a list or watch, by which the API server authorizes it. */
export function namedBySelector(info: Pick<ResourceRequest, 'query'>): string | undefined {
  const selector = info.query.get('fieldSelector') ?? ''
  const match = /(?:^|,)metadata\.name=?=((?:[^,\\]|\\.)+)/.exec(selector)
  return match?.[1]?.replaceAll(/\\(.)/g, '$1')
}

type TokenPost = ResourceRequest & { readonly verb: 'create'; readonly subresource: 'token' }

/**
 * A request for a service account token: a write by its verb, which stores nothing but its answer.
 */
export const isTokenRequest = (info: RequestInfo): info is TokenPost =>
  info.isResource &&
  info.verb === 'create' &&
  info.gvr.group === '' &&
  info.gvr.resource === 'serviceaccounts' &&
  info.subresource === 'token'

type ReviewPost = ResourceRequest & { readonly verb: 'create' }

const reviews = new Set([
  'subjectaccessreviews.authorization.k8s.io',
  'selfsubjectaccessreviews.authorization.k8s.io',
  'localsubjectaccessreviews.authorization.k8s.io',
  'tokenreviews.authentication.k8s.io',
])

/** A question about a right or a token: a write by its verb, of which nothing is stored. */
export const isReview = (info: RequestInfo): info is ReviewPost =>
  info.isResource &&
  info.verb === 'create' &&
  info.name === undefined &&
  reviews.has(qualifiedResource(info.gvr))

/**
 * Whether the answer to a request depends on its body, which the hub has to read to record or
 * repeat the answer.
 */
export const isAnsweredByBody = (info: RequestInfo): info is TokenPost | ReviewPost =>
  isTokenRequest(info) || isReview(info)

/**
 * Whether a request changes nothing at an API server and may be sent twice: a read, a token request
 * or a review.
 */
export const changesNothing = ({
  method,
  info,
}: {
  readonly method: string
  readonly info: RequestInfo
}): boolean => method === 'GET' || method === 'HEAD' || isAnsweredByBody(info)

const reads = new Set(['get', 'list', 'watch'])

/** Whether a verb of resources reads. */
export const isRead = ({ verb }: { readonly verb: string }): boolean => reads.has(verb)

/**
 * Whether a request watches a resource. The verb alone does not tell: that of a non-resource
 * request is its method, which may be any word.
 */
export const isWatch = (info: RequestInfo): boolean => info.isResource && info.verb === 'watch'

/** Whether a request reads an object or a list, as the API's own types have them. */
export const isObjectRead = (info: RequestInfo): boolean =>
  info.isResource && info.subresource === undefined && (info.verb === 'get' || info.verb === 'list')

const longRunning = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/**
 * Long-running requests: watches, and streams for a person (k/k
 * pkg/controlplane/apiserver/config.go).
 */
export const isLongRunning = (info: RequestInfo): boolean =>
  info.isResource &&
  (info.verb === 'watch' || (info.subresource !== undefined && longRunning.has(info.subresource)))

/**
 * Whether the API server relays the request to a pod, a service or a kubelet: a 401 may then be
 * theirs, and does not concern the credentials for the API server.
 */
export const isRelayed = (info: RequestInfo): boolean =>
  info.isResource && info.subresource !== undefined && isLongRunning(info)
