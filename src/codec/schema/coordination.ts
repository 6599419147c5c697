import { objectMeta } from './meta.ts'
import { int32, message, microtime, of, optional, string } from './notation.ts'

// kubernetes/api coordination/v1

const leaseSpec = message('LeaseSpec', {
  holderIdentity: optional(string(1)),
  leaseDurationSeconds: optional(int32(2)),
  acquireTime: optional(microtime(3)),
  renewTime: optional(microtime(4)),
  leaseTransitions: optional(int32(5)),
  strategy: optional(string(6)),
  preferredHolder: optional(string(7)),
})

export const lease = message('Lease', {
  metadata: of(1, objectMeta),
  spec: of(2, leaseSpec),
})
