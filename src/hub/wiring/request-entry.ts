import type { Filtered } from '../../http/exchange/exchange.ts'
import type { AnsweredRequest } from '../pipeline/trace.ts'

/** A request that has ended: names, and nothing of its query, headers or bodies. */
export interface RequestEntry {
  /** When it ended, in RFC 3339. */
  readonly at: string
  readonly component: string
  readonly caller: AnsweredRequest['caller']
  /** The service account that the caller is known as. */
  readonly account?: string
  readonly verb: string
  /** `endpointslices.discovery.k8s.io`; empty where the request is not about a resource. */
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  readonly path: string
  readonly code: number
  /** From the request to the end of its answer. */
  readonly ms: number
  /** Of the body, as sent to the client; 0 for one that changes its protocol. */
  readonly bytes: number
  readonly source: string
  /** Why this source answered. */
  readonly reason?: string
  /** The API server that answered. */
  readonly upstream?: string
  /** Filters that acted, and how many objects they changed. */
  readonly filtered?: Filtered
}

/** In characters. */
const longestText = 200

/**
 * A request as it was answered: few are ever read, so an entry is made for a reader alone. What its
 * texts hold in memory is at most the head of a request, which Node limits.
 */
export function entryOf(answered: AnsweredRequest): RequestEntry {
  const { component, verb, resource, path, code, ms, source, at } = answered
  const { caller, account, namespace, name, sentBytes, explanation = {} } = answered
  const { reason, ...rest } = explanation
  return {
    at: new Date(at).toISOString(),
    component,
    caller,
    ...(account !== undefined && { account: account.slice(0, longestText) }),
    verb,
    resource,
    ...(namespace !== undefined && { namespace: namespace.slice(0, longestText) }),
    ...(name !== undefined && { name: name.slice(0, longestText) }),
    path: path.slice(0, longestText),
    code,
    ms: Math.round(ms * 10) / 10,
    bytes: sentBytes,
    source,
    ...(reason !== undefined && { reason: reason.slice(0, longestText) }),
    ...rest,
  }
}

/** The parameters that select requests; each has one value or several, of which one has to fit. */
const fits: Readonly<Record<string, (entry: RequestEntry, value: string) => boolean>> = {
  component: ({ component }, value) => component === value,
  /** The caller's kind of identity, or the name of its account. */
  user: ({ caller, account }, value) => caller === value || account === value,
  verb: ({ verb }, value) => verb === value,
  /** With or without its group. */
  resource: ({ resource }, value) => resource === value || resource.split('.')[0] === value,
  namespace: ({ namespace }, value) => namespace === value,
  name: ({ name }, value) => name === value,
  /** A code, or a class of them as `5xx`. */
  code: ({ code }, value) =>
    value.endsWith('xx') ? Math.floor(code / 100) === Number(value[0]) : code === Number(value),
  source: ({ source }, value) => source === value,
  /** In milliseconds. */
  'slower-than': ({ ms }, value) => ms > Number(value),
}

/**
 * Whether a request is one of those that the query names. Throws where it has a parameter that
 * selects nothing.
 */
export function requestFilter(query: URLSearchParams): (entry: RequestEntry) => boolean {
  const wanted = [...new Set(query.keys())].map((name) => {
    const fit = Object.hasOwn(fits, name) ? fits[name] : undefined
    if (!fit) throw new Error(`requests are not selected by ${JSON.stringify(name)}`)
    return { fit, values: query.getAll(name) }
  })
  return (entry) => wanted.every(({ fit, values }) => values.some((value) => fit(entry, value)))
}
