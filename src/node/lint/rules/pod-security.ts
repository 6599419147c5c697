import { documents } from '../documents.ts'
import { inSpec, onHostNetwork, portsOf } from '../pod.ts'
import type { Rule } from '../rule.ts'
import { hostPortsText } from './ports.ts'

const refusing = new Set(['baseline', 'restricted'])

export const podSecurityLevel: Rule = {
  id: 'pod-security-level',
  level: 'error',
  title: 'hostNetwork or hostPort in a namespace that does not allow it',
  reason:
    'The Pod Security levels baseline and restricted allow neither hostNetwork nor a hostPort: the pods are refused, and their Deployment or DaemonSet waits for ever.',
  document: documents.podSecurity,
  *checkPod(pod, context) {
    const levels = context.namespaces.get(pod.namespace)
    const ports = hostPortsText(portsOf(pod))
    if (levels === undefined || (!onHostNetwork(pod) && ports === '')) return
    const path = onHostNetwork(pod) ? inSpec(pod, 'hostNetwork') : inSpec(pod, 'containers')
    const what = onHostNetwork(pod) ? 'hostNetwork' : `hostPort ${ports}`
    const { enforce = '', warn = '' } = levels
    if (refusing.has(enforce)) {
      yield {
        path,
        message: `namespace ${pod.namespace} enforces the level ${enforce}, which refuses ${what}: label it pod-security.kubernetes.io/enforce: privileged, or use another`,
      }
    } else if (refusing.has(warn)) {
      yield {
        path,
        level: 'warning',
        message: `namespace ${pod.namespace} warns at the level ${warn} of ${what}`,
      }
    }
  },
}
