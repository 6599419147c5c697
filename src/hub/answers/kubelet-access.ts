import type { Review } from '../../api/codec/review.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { objectAt, textAt } from '../../api/kube/json-at.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import type { ReviewAnswer } from './recorded-reviews.ts'

/** What the hub uses of the kubelet's API, as the kubelet names it (pkg/kubelet/server/auth.go). */
const used = new Set(['proxy', 'stats', 'metrics'])

/**
 * Answers the kubelet of this node that the hub may use the kubelet's API, which it does for root
 * only. `hubName` is the name in the certificate that the hub shows there. `undefined` for any
 * other question, or of any other caller.
 */
export function ownUseOf(
  nodeName: string,
  hubName: string,
  { credential }: Pick<Exchange, 'credential'>,
  { gvr }: Pick<ResourceRequest, 'gvr'>,
  { spec }: Pick<Review, 'spec'>,
): ReviewAnswer | undefined {
  const asked = objectAt(spec, 'resourceAttributes')
  const isOwnUse =
    credential === 'node' &&
    qualifiedResource(gvr) === 'subjectaccessreviews.authorization.k8s.io' &&
    textAt(spec, 'user') === hubName &&
    textAt(asked, 'group') === '' &&
    textAt(asked, 'resource') === 'nodes' &&
    textAt(asked, 'name') === nodeName &&
    textAt(asked, 'namespace') === '' &&
    used.has(textAt(asked, 'subresource')) &&
    ['get', 'create'].includes(textAt(asked, 'verb'))
  if (!isOwnUse) return undefined
  // No API server has confirmed it.
  return { status: { allowed: true, reason: 'the hub of this node, for root' }, confirmedAt: 0 }
}
