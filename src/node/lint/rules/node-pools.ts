import { valueAt, optionalTextAt } from '../../../api/kube/json-at.ts'
import { isNodePool } from '../context.ts'
import { documents } from '../documents.ts'
import type { Rule } from '../rule.ts'

export const cloudPool: Rule = {
  id: 'cloud-host-network',
  level: 'error',
  title: 'a NodePool of type Cloud with hostNetwork',
  reason: 'Admission refuses it: host-network pools are for nodes at the edge.',
  document: documents.proposal,
  *checkObject(object) {
    if (!isNodePool(object) || valueAt(object, 'spec', 'hostNetwork') !== true) return
    if (optionalTextAt(object, 'spec', 'type')?.toLowerCase() !== 'cloud') return
    yield {
      path: ['spec', 'type'],
      message: 'a host-network pool is refused as type Cloud: use type: Edge',
    }
  },
}

export const poolVersion: Rule = {
  id: 'pool-version',
  level: 'warning',
  title: 'spec.hostNetwork in a version of NodePool that loses it',
  reason:
    'v1alpha1 has no such field, and the API server drops it. yurt-manager converts v1beta1 by an annotation and not by the field, so that the pool is stored as a standard one, which cannot be changed later.',
  document: documents.withdrawal,
  *checkObject(object) {
    if (!isNodePool(object) || valueAt(object, 'spec', 'hostNetwork') === undefined) return
    const version = optionalTextAt(object, 'apiVersion')?.split('/')[1]
    const path = ['apiVersion']
    if (version === 'v1alpha1') {
      yield {
        path,
        level: 'error',
        message: 'a NodePool of v1alpha1 has no hostNetwork: write apps.openyurt.io/v1beta2',
      }
    } else if (version === 'v1beta1') {
      yield {
        path,
        message:
          "where yurt-manager converts NodePools, hostNetwork is lost from v1beta1 (nodehub's conversion keeps it): write apps.openyurt.io/v1beta2",
      }
    }
  },
}

export const hostNetworkNotBoolean: Rule = {
  id: 'host-network-not-boolean',
  level: 'error',
  title: 'spec.hostNetwork that is neither true nor false',
  reason: 'The API server refuses a text where true or false belongs.',
  document: documents.proposal,
  *checkObject(object) {
    const value = isNodePool(object) ? valueAt(object, 'spec', 'hostNetwork') : undefined
    if (value === undefined || typeof value === 'boolean') return
    yield { path: ['spec', 'hostNetwork'], message: 'write true or false, without quotes' }
  },
}
