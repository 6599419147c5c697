import type { Review } from '../../api/codec/review.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { ReviewAnswer } from './recorded-reviews.ts'

/**
 * The parts of the kubelet's API that the hub uses, as the kubelet names them
 * (pkg/kubelet/server/auth.go).
 */
const used = new Set(['proxy', 'stats', 'metrics'])

/**
 * Answers the kubelet of this node that the hub may use the kubelet's API, which it does for root
 * only. `hubName` is the name in the certificate that the hub shows there. `undefined` for any
 * other review, and for any other caller.
 */
export function ownUseOf(
  nodeName: string,
  hubName: string,
  { credential }: Pick<Exchange, 'credential'>,
  { gvr }: Pick<ResourceRequest, 'gvr'>,
  { spec }: Pick<Review, 'spec'>,
): ReviewAnswer | undefined {
  const attributes = objectAt(spec, 'resourceAttributes')
  const isOwnUse =
    credential === 'node' &&
    qualifiedResource(gvr) === 'subjectaccessreviews.authorization.k8s.io' &&
    textAt(spec, 'user') === hubName &&
    textAt(attributes, 'group') === '' &&
    textAt(attributes, 'resource') === 'nodes' &&
    textAt(attributes, 'name') === nodeName &&
    textAt(attributes, 'namespace') === '' &&
    used.has(textAt(attributes, 'subresource')) &&
    ['get', 'create'].includes(textAt(attributes, 'verb'))
  if (!isOwnUse) return undefined
  // No API server has confirmed it.
  return { status: { allowed: true, reason: 'the hub of this node, for root' }, confirmedAt: 0 }
}
