import t from 'tap'
import { workloadPlacement } from '../../../src/cluster/components/placement.ts'
import { componentOf } from '../../../src/cluster/components/component.ts'
import type { JsonObject } from '../../../src/api/kube/json.ts'

const label = 'nodepool.openyurt.io/hostnetwork'

const podWith = (terms: readonly JsonObject[]): JsonObject => ({
  spec: {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
      },
    },
  },
})

const term = (key: string, operator: string, ...values: string[]): JsonObject => ({
  matchExpressions: [{ key, operator, values }],
})

const notIn = term(label, 'NotIn', 'true')
const linux = term('kubernetes.io/os', 'In', 'linux')

void t.test('anti-affinity counts if each term keeps the pod off', async (t) => {
  const cases: [string, JsonObject, boolean][] = [
    ['nothing', { spec: {} }, false],
    ['NotIn true', podWith([notIn]), true],
    ['NotIn true among others', podWith([term(label, 'NotIn', 'x', 'true')]), true],
    ['NotIn another', podWith([term(label, 'NotIn', 'x')]), false],
    ['DoesNotExist', podWith([term(label, 'DoesNotExist')]), true],
    ['In another', podWith([term(label, 'In', 'false')]), true],
    ['In true', podWith([term(label, 'In', 'true')]), false],
    ['Exists', podWith([term(label, 'Exists')]), false],
    ['one alternative without it', podWith([notIn, linux]), false],
    ['an empty term, which matches nothing', podWith([notIn, {}]), true],
    ['empty terms alone', podWith([{}]), true],
    ['a node selector', { spec: { nodeSelector: { [label]: 'false' } } }, true],
    ['a node selector for them', { spec: { nodeSelector: { [label]: 'true' } } }, false],
  ]
  for (const [what, pod, keptOff] of cases) t.equal(workloadPlacement(pod).keptOff, keptOff, what)
})

void t.test('components are known by name or label, with who writes them', async (t) => {
  const workload = (metadata: JsonObject): JsonObject => ({
    metadata: { namespace: 'kube-system', ...metadata },
    spec: { template: { spec: {} }, replicas: 2 },
  })
  t.match(
    componentOf('Deployment', workload({ name: 'rke2-dns', labels: { 'k8s-app': 'kube-dns' } })),
    { what: 'CoreDNS', rolls: 2 },
  )
  t.match(
    componentOf(
      'DaemonSet',
      workload({
        name: 'calico-node',
        ownerReferences: [
          {
            apiVersion: 'operator.tigera.io/v1',
            kind: 'Installation',
            name: 'default',
            controller: true,
          },
        ],
      }),
    ),
    { writer: 'Installation default' },
  )
  t.match(
    componentOf(
      'Deployment',
      workload({
        name: 'cilium-operator',
        labels: { 'app.kubernetes.io/managed-by': 'Helm' },
        annotations: { 'meta.helm.sh/release-name': 'cilium' },
      }),
    ),
    { writer: 'Helm release cilium' },
  )
})
