import type { GVR } from '../kube/gvk.ts'
import { selectorOfName } from '../kube/selectors.ts'

export type ResourceVerb =
  'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** What a request asks for, as apiserver pkg/endpoints/request/requestinfo.go understands it. */
export type RequestInfo = ResourceRequest | NonResourceRequest

export interface NonResourceRequest {
  readonly isResource: false
  readonly path: string
  /** The HTTP method in lower case. */
  readonly verb: string
  readonly query: URLSearchParams
  /**
   * The path could mean two things to two readers: it may be passed on as it came, and nothing may
   * be concluded from it.
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
   * From the path only: a `metadata.name` field selector stays a selector here (see
   * `namedBySelector`). Of a watch only where the query has a field selector of its own.
   */
  readonly name?: string
  readonly subresource?: string
  /**
   * As it was sent; but a name in the path of a watch (deprecated) is the field selector that an
   * API server makes of it.
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

/**
 * Subresources of a namespace object; any other second word under a namespace is a resource in it.
 */
const namespaceSubresources = new Set(['status', 'finalize'])

export class MalformedPath extends Error {
  readonly code = 'MALFORMED_PATH'
}

/**
 * Splits path and query. Paths that are not under `/api/<version>/` or `/apis/<group>/<version>/`
 * with at least a resource are non-resource requests. So are those that could mean two things to
 * two readers, and they are marked as such: NUL, `.` and `..` as a segment, what is no UTF-8, an
 * encoded slash or an empty segment in what is read here (what follows a subresource is its own).
 * Throws `MalformedPath` for what no API server reads either: a bad escape, and a target that is no
 * path (RFC 9112 section 3.2 has three more forms).
 */
export function parseRequestInfo(method: string, url: string): RequestInfo {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  const nonResource = (): NonResourceRequest => ({
    isResource: false,
    path,
    verb: method.toLowerCase(),
    query,
  })
  const ambiguous = (): NonResourceRequest => ({ ...nonResource(), ambiguous: true })
  const segments = split(path)
  if (segments === undefined) return ambiguous()
  const verb = verbOfMethod[method]
  const [prefix, ...rest] = segments
  const isUnderApi = verb !== undefined && (prefix === 'api' || prefix === 'apis')
  const group = prefix === 'api' ? '' : (rest.shift() ?? '')
  const version = rest.shift()
  if (!isUnderApi || version === undefined || rest.length === 0) {
    return areClear(segments) ? nonResource() : ambiguous()
  }
  let legacyWatch = false
  if (rest[0] === 'watch' && rest.length > 1) {
    legacyWatch = true // /api/v1/watch/pods: deprecated, still served
    rest.shift()
  }
  let namespace: string | undefined
  if (rest[0] === 'namespaces' && rest.length > 2 && !namespaceSubresources.has(rest[2] ?? '')) {
    namespace = rest[1]
    rest.splice(0, 2)
  }
  const [resource = '', name, subresource, ...extra] = rest
  if (!areClear(segments.slice(0, segments.length - extra.length))) return ambiguous()
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
 * The segments between slashes, without escapes; a slash at the end stands before nothing.
 * `undefined` where one has two readings.
 */
function split(path: string): string[] | undefined {
  if (!path.startsWith('/')) throw new MalformedPath('the target of the request is not a path')
  const segments = path.slice(1).split('/')
  if (segments.at(-1) === '') segments.pop()
  if (!path.includes('%') && !path.includes('\0')) {
    return segments.some((segment) => segment === '.' || segment === '..') ? undefined : segments
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

const areClear = (segments: readonly string[]): boolean =>
  segments.every((segment) => segment !== '' && !segment.includes('/'))

/** `undefined` for escapes that are no UTF-8. */
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
 * Whatever is said but `0` and `false`, an empty value too (apimachinery
 * pkg/runtime/conversion.go).
 */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

/**
 * The one name a list or watch is limited to by its field selector, as the API server authorizes
 * it.
 */
export function namedBySelector(info: Pick<ResourceRequest, 'query'>): string | undefined {
  const match = /(?:^|,)metadata\.name=?=([^,]+)/.exec(info.query.get('fieldSelector') ?? '')
  return match?.[1]
}

type TokenPost = ResourceRequest & { readonly verb: 'create'; readonly subresource: 'token' }

/**
 * A request for a token of a service account: a write by its verb, of which nothing stays but the
 * answer.
 */
export const isTokenRequest = (info: RequestInfo): info is TokenPost =>
  info.isResource &&
  info.verb === 'create' &&
  info.gvr.group === '' &&
  info.gvr.resource === 'serviceaccounts' &&
  info.subresource === 'token'

/**
 * Whether a request changes nothing at an API server, so that it may be sent and answered a second
 * time: a read, or one for a token.
 */
export const changesNothing = ({
  method,
  info,
}: {
  readonly method: string
  readonly info: RequestInfo
}): boolean => method === 'GET' || method === 'HEAD' || isTokenRequest(info)

/**
 * A request to watch a resource; the verb alone does not say it, since that of another request is
 * its method, whatever word that is.
 */
export const isWatch = (info: RequestInfo): boolean => info.isResource && info.verb === 'watch'

const longRunning = new Set(['attach', 'exec', 'proxy', 'log', 'portforward'])

/**
 * Requests that may last: watches, and what streams to a person (k/k
 * pkg/controlplane/apiserver/config.go).
 */
export const isLongRunning = (info: RequestInfo): boolean =>
  info.isResource &&
  (info.verb === 'watch' || (info.subresource !== undefined && longRunning.has(info.subresource)))

/**
 * Whether the API server relays the request to a pod, a service or a kubelet: a 401 may then be
 * theirs, and says nothing of the credentials that were shown to the API server.
 */
export const isRelayed = (info: RequestInfo): boolean =>
  info.isResource && info.subresource !== undefined && isLongRunning(info)
