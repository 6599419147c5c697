import t from 'tap'
import { warningsOf } from '../../../src/node/lint/warnings.ts'

const context = {
  pools: new Map([['hn', { hostNetwork: true }]]),
  namespaces: new Map(),
}
const nodeSelector = { 'apps.openyurt.io/nodepool': 'hn' }

void t.test('warnings name their rule, the gravest first, without notes', async (t) => {
  const ports = [{ containerPort: 80 }, { containerPort: 10250 }]
  const pod = {
    metadata: { name: 'p', labels: { 'apps.openyurt.io/desired-nodepool': 'hn' } },
    spec: { nodeSelector, hostNetwork: true, containers: [{ name: 'c', ports }] },
  }
  t.strictSame(warningsOf(pod, context), [
    'port 10250 of a node is that of the kubelet: choose another (reserved-port)',
    'port 80 of a node is often that of HTTP: choose another where you can (reserved-port)',
  ])
})

void t.test('warnings stay within API server limits', async (t) => {
  const ports = Array.from({ length: 30 }, (_, at) => ({ containerPort: 30_000 + at }))
  const pod = { spec: { nodeSelector, hostNetwork: true, containers: [{ ports }] } }
  const many = warningsOf(pod, context)
  t.equal(many.length, 10)
  const annotation = 'ä'.repeat(400)
  const annotations = { 'apps.openyurt.io/exclude-host-network-pool': annotation }
  const [long = ''] = warningsOf({ metadata: { annotations }, spec: {} }, context)
  t.ok(Buffer.byteLength(long) <= 256)
  t.match(long, /^"ä+…$/)
})
