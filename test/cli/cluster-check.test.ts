import t from 'tap'
import { checkCluster } from '../../src/cli/cluster-check.ts'
import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { valueAt } from '../../src/api/kube/json-at.ts'
import {
  excludeAnnotation,
  hostNetworkLabel,
  nodePoolLabel,
  nodePools,
} from '../../src/api/kube/node-pool.ts'
import { nodes, pods } from '../kit/cloud.ts'
import { startTestCluster, type TestCluster } from '../kit/cluster-api.ts'
import { said, type Said } from '../kit/terminal.ts'

t.setTimeout(300_000)

const daemonSets: GVR = { group: 'apps', version: 'v1', resource: 'daemonsets' }

const daemonSet = (name: string, metadata: JsonObject = {}, spec: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'kube-system', ...metadata },
  spec: {
    selector: { matchLabels: { name } },
    template: {
      metadata: { labels: { name } },
      spec: { containers: [{ name, image: name }], ...spec },
    },
  },
  status: {
    desiredNumberScheduled: 3,
    updatedNumberScheduled: 3,
    numberAvailable: 3,
    observedGeneration: 1000,
  },
})

const check = ({ api }: TestCluster): Promise<Said> =>
  said((terminal) => checkCluster(api, terminal))

const affinityOf = ({ sandbox }: TestCluster, name: string) =>
  valueAt(sandbox.get(daemonSets, name, 'kube-system'), 'spec', 'template', 'spec', 'affinity')

void t.test('components are reported, each with the command that keeps it off', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  const old = {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'nodepool.openyurt.io/host-network', operator: 'NotIn', values: ['true'] },
            ],
          },
        ],
      },
    },
  }
  sandbox.create(daemonSets, daemonSet('kube-proxy'))
  sandbox.create(daemonSets, daemonSet('kube-flannel-ds', {}, { affinity: old }))
  sandbox.create(daemonSets, daemonSet('shop'))
  sandbox.create(
    daemonSets,
    daemonSet('cilium', { annotations: { 'meta.helm.sh/release-name': 'cilium' } }),
  )
  const first = await check(cluster)
  t.equal(first.code, 1)
  t.match(
    first.out,
    'DaemonSet kube-system/kube-proxy (kube-proxy): not kept off host-network nodes; a change replaces 3 pods, one a node',
  )
  t.match(first.out, 'kube-flannel-ds: nodepool.openyurt.io/host-network is without effect')
  t.match(first.out, 'Helm release cilium writes it')
  t.notMatch(first.out, 'shop')

  const printed = [...first.out.matchAll(/^ {2}kubectl patch -n kube-system (\S+) .* -p '(.*)'$/gm)]
  t.strictSame(
    printed.map(([, target]) => target),
    ['daemonset/kube-flannel-ds', 'daemonset/kube-proxy'],
    'what Helm writes is changed there',
  )
  for (const [, target = '', patch = ''] of printed) {
    const path = `/apis/apps/v1/namespaces/kube-system/${target.replace('/', 's/')}`
    await cluster.api.patch(path, JSON.parse(patch) as JsonObject)
  }
  t.match(affinityOf(cluster, 'kube-proxy'), {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: hostNetworkLabel, operator: 'NotIn', values: ['true'] }] },
        ],
      },
    },
  })
  const second = await check(cluster)
  t.match(second.out, 'DaemonSet kube-system/kube-flannel-ds (flannel): kept off')
  t.match(second.out, 'DaemonSet kube-system/kube-proxy (kube-proxy): kept off')
  t.equal(second.code, 1, 'cilium is left')
})

void t.test('nodes that wait for the label and misplaced excluded pods are reported', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(nodePools, {
    metadata: { name: 'h' },
    spec: { hostNetwork: true },
  })
  sandbox.create(nodes, {
    metadata: { name: 'waits', labels: { [nodePoolLabel]: 'h' } },
  })
  sandbox.create(nodes, {
    metadata: { name: 'has-it', labels: { [nodePoolLabel]: 'h', [hostNetworkLabel]: 'true' } },
  })
  const pod = (name: string, nodeName: string, annotations: JsonObject = {}): JsonObject => ({
    metadata: { name, namespace: 'default', annotations },
    spec: { nodeName, containers: [{ name: 'main', image: 'i' }] },
  })
  sandbox.create(pods, pod('served', 'waits'))
  sandbox.create(pods, pod('slipped', 'has-it', { [excludeAnnotation]: 'true' }))
  const told = await check(cluster)
  t.equal(told.code, 1)
  t.match(told.out, /node waits: The label .* is withheld: .*\(default\/served\)/)
  t.match(
    told.out,
    'pod default/slipped: excluded from host-network pools, but on has-it: delete it',
  )
})
