import { objectMeta } from './meta.ts'
import { toleration } from './scheduling.ts'
import { list, map, message, of, optional, quantity, shown, string } from './notation.ts'

// kubernetes/api node/v1

const overhead = message('Overhead', {
  podFixed: map(quantity(1)),
})

const scheduling = message('Scheduling', {
  nodeSelector: map(string(1)),
  tolerations: list(of(2, toleration)),
})

export const runtimeClass = message('RuntimeClass', {
  metadata: of(1, objectMeta),
  handler: shown(string(2)),
  overhead: optional(of(3, overhead)),
  scheduling: optional(of(4, scheduling)),
})
