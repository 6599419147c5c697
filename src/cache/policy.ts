import type { Exchange } from '../exchange/exchange.ts'
import type { HeaderList } from '../exchange/headers.ts'
import { MalformedSelector } from '../kube/selectors.ts'
import type { ResourceRequest } from '../request/request-info.ts'
import { selectorsOf } from '../store/keys.ts'

/** What of an exchange is kept: an object, a collection by list or watch, a document; or nothing. */
export type Recordable =
  | { readonly kind: 'object' | 'list' | 'watch'; readonly info: ResourceRequest }
  | { readonly kind: 'document' }

/** Resources of which yesterday's answer is no answer: requests for a signature are served by the cloud or not at all. */
const neverKept = new Set(['certificatesigningrequests.certificates.k8s.io'])

const documentPaths = /^\/(?:api|apis|version|openapi)(?:\/|$)/

/** What can be kept of the answer to `exchange`. */
export function recordable(exchange: Exchange): Recordable | undefined {
  if (exchange.method !== 'GET' || exchange.upgrade) return undefined
  if (impersonates(exchange.headers)) return undefined
  const { info } = exchange
  if (!info.isResource) return documentPaths.test(info.path) ? { kind: 'document' } : undefined
  if (exchange.forms.length === 0 || info.subresource !== undefined || info.query.has('pretty')) {
    return undefined
  }
  if (neverKept.has(`${info.gvr.resource}.${info.gvr.group}`)) return undefined
  switch (info.verb) {
    case 'get':
      return { kind: 'object', info }
    case 'list':
    case 'watch':
      return selectorsAreWellFormed(info) ? { kind: info.verb, info } : undefined
    default:
      return undefined
  }
}

const impersonates = (headers: HeaderList): boolean =>
  headers.raw.some((field, i) => i % 2 === 0 && field.toLowerCase().startsWith('impersonate-'))

function selectorsAreWellFormed(info: ResourceRequest): boolean {
  try {
    selectorsOf(info)
    return true
  } catch (error) {
    if (error instanceof MalformedSelector) return false
    throw error
  }
}
