import t from 'tap'
import { componentOf } from '../../../src/api/request/component.ts'

void t.test('a component is the User-Agent’s name before the version', async (t) => {
  const table: [string | undefined, string][] = [
    ['kubelet/v1.35.0 (linux/amd64) kubernetes/93248f9', 'kubelet'],
    ['kube-proxy/v1.35.0 (linux/amd64) kubernetes/93248f9', 'kube-proxy'],
    ['kubectl.1.33/v1.33.1 (linux/amd64)', 'kubectl'],
    ['kubectl-v1.33/v1.33.1', 'kubectl'],
    ['kubectl-plugin/v1', 'kubectl-plugin'],
    ['Kubelet/v1', 'kubelet'],
    ['coredns', 'coredns'],
    ['Go-http-client/1.1', 'go-http-client'],
    ['my agent/1', 'my'],
    ['/v1', ''],
    ['', ''],
    ['n'.repeat(128), 'n'.repeat(128)],
    [`${'n'.repeat(129)}/v1`, ''],
    [undefined, ''],
  ]
  for (const [agent, expected] of table) t.equal(componentOf(agent), expected)
})
