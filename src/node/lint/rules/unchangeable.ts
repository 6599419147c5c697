import { valueAt } from '../../../api/kube/json-at.ts'
import { identityOf, isNodePool } from '../context.ts'
import { documents } from '../documents.ts'
import type { Rule } from '../rule.ts'

export const hostNetworkChanged: Rule = {
  id: 'host-network-changed',
  level: 'error',
  title: 'hostNetwork changed on what exists',
  reason:
    'Neither a pod that runs nor a NodePool that exists can change it: the API server refuses the update.',
  document: documents.podApi,
  *checkObject(object, { before }) {
    const identity = identityOf(object)
    const earlier = identity === undefined ? undefined : before?.get(identity)
    const pool = isNodePool(object)
    if (earlier === undefined || (!pool && object['kind'] !== 'Pod')) return
    const [was, is] = [earlier, object].map((each) => valueAt(each, 'spec', 'hostNetwork') === true)
    if (was === is) return
    yield {
      path: ['spec', 'hostNetwork'],
      message: pool
        ? `hostNetwork of a NodePool cannot be changed from ${was} to ${is}: make another pool, and join its nodes anew`
        : `hostNetwork of a pod cannot be changed from ${was} to ${is}: delete the pod and create it anew`,
    }
  },
}
