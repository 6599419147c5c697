import { qualifiedResource } from '../../../api/kube/gvk.ts'
import { isWatch } from '../../../api/request/request-info.ts'
import type { OpenRequest } from '../../pipeline/open-requests.ts'
import { callerOf, objectOf } from '../../pipeline/trace.ts'
import { shortened } from './collections.ts'
import type { HubStatus, UnderWayStatus } from './document.ts'

/** Enough to see which ones hang: a node has few at a time. */
export const mostUnderWay = 20

/** Open requests but for watches, in the order in which they began. */
export function underWayStatus(open: Iterable<OpenRequest>): HubStatus['underWay'] {
  const all = [...open].filter(({ exchange }) => !isWatch(exchange.info))
  return {
    items: all.slice(0, mostUnderWay).map(statusOf),
    omitted: Math.max(all.length - mostUnderWay, 0),
  }
}

function statusOf({ exchange, since, source, sentBytes }: OpenRequest): UnderWayStatus {
  const { component, info } = exchange
  const { namespace, name } = objectOf(info)
  return {
    component,
    ...callerOf(exchange),
    verb: info.verb,
    resource: info.isResource ? qualifiedResource(info.gvr) : '',
    ...(namespace !== undefined && { namespace: shortened(namespace) }),
    ...(name !== undefined && { name: shortened(name) }),
    path: shortened(info.path),
    since: new Date(since).toISOString(),
    bytes: sentBytes,
    ...(source && { source }),
  }
}
