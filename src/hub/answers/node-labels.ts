import type { Json, JsonObject } from '../../api/kube/json.ts'

/** Reserved labels that a kubelet may set on its node (kubelet pkg/apis/well_known_labels.go). */
const kubeletLabels = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
])

const kubeletDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io']
const reservedDomains = ['kubernetes.io', 'k8s.io']
const restricted = 'node-restriction.kubernetes.io'

/**
 * The labels of a node after its kubelet has changed them, as the NodeRestriction admission plug-in
 * allows it (plugin/pkg/admission/noderestriction): labels that a kubelet may not set stay as they
 * were.
 */
export function labelsSetByNode(before: JsonObject, after: JsonObject): JsonObject {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return Object.fromEntries(
    names.flatMap((name): [string, Json][] => {
      const value = (maySet(name) ? after : before)[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function maySet(label: string): boolean {
  const [domain] = label.includes('/') ? label.split('/', 1) : ['']
  const isIn = (other: string): boolean =>
    domain === other || domain?.endsWith(`.${other}`) === true
  if (isIn(restricted)) return false
  return !reservedDomains.some(isIn) || kubeletLabels.has(label) || kubeletDomains.some(isIn)
}
