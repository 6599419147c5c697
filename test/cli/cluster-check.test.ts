import t from 'tap'
import { checkCluster } from '../../src/cli/cluster-check.ts'
import type { CheckConfig } from '../../src/config/cluster-config.ts'
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

async function check(
  { api, kubeconfig }: TestCluster,
  rest: Partial<CheckConfig> = {},
): Promise<{ code: number; out: string }> {
  let out = ''
  const config: CheckConfig = {
    access: { kind: 'kubeconfig', file: kubeconfig },
    namespace: 'kube-system',
    qps: 100,
    burst: 100,
    action: 'report',
    evict: false,
    only: [],
    settleMs: 20_000,
    ...rest,
  }
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => t.fail(text),
  }
  return { code: await checkCluster(api, config, terminal), out }
}

const affinityOf = ({ sandbox }: TestCluster, name: string) =>
  valueAt(sandbox.get(daemonSets, name, 'kube-system'), 'spec', 'template', 'spec', 'affinity')

void t.test('components are reported, patched one after another, and reverted', async (t) => {
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

  const applied = await check(cluster, { action: 'apply' })
  t.match(applied.out, 'changed, and its pods have settled')
  t.match(applied.out, 'left to Helm release cilium')
  t.equal(affinityOf(cluster, 'cilium'), undefined)
  t.match(affinityOf(cluster, 'kube-proxy'), {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: hostNetworkLabel, operator: 'NotIn', values: ['true'] }] },
        ],
      },
    },
  })
  t.equal((await check(cluster, { action: 'apply', only: ['kube-system/cilium'] })).code, 0)
  t.match((await check(cluster)).out, 'DaemonSet kube-system/cilium (cilium): kept off')

  const reverted = await check(cluster, { action: 'revert' })
  t.equal(reverted.code, 0)
  t.strictSame(affinityOf(cluster, 'kube-flannel-ds'), old)
  t.equal(affinityOf(cluster, 'kube-proxy'), undefined)
  t.equal((await check(cluster, { action: 'revert' })).out, '', 'once')
})

void t.test('a rollout that does not settle stops the following ones', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  const slow = daemonSet('calico-node')
  sandbox.create(daemonSets, {
    ...slow,
    status: { ...(slow['status'] as JsonObject), numberAvailable: 2 },
  })
  sandbox.create(daemonSets, daemonSet('kube-proxy'))
  const { code, out } = await check(cluster, { action: 'apply', settleMs: 0 })
  t.equal(code, 1)
  t.match(out, 'its pods have not settled in time')
  t.match(out, 'left: an earlier change has not settled')
  t.equal(affinityOf(cluster, 'kube-proxy'), undefined)
})

void t.test('a component changed since is not reverted', async (t) => {
  const cluster = await startTestCluster(t)
  const { sandbox } = cluster
  sandbox.create(daemonSets, daemonSet('kube-proxy'))
  await check(cluster, { action: 'apply' })
  const now = sandbox.get(daemonSets, 'kube-proxy', 'kube-system')!
  const theirs = { nodeAffinity: {} }
  sandbox.update(daemonSets, {
    ...now,
    spec: {
      ...(now['spec'] as JsonObject),
      template: {
        metadata: { labels: { name: 'kube-proxy' } },
        spec: { containers: [], affinity: theirs },
      },
    },
  })
  const { code, out } = await check(cluster, { action: 'revert' })
  t.equal(code, 1)
  t.match(out, 'left as it is: changed by another client since')
  t.strictSame(affinityOf(cluster, 'kube-proxy'), theirs)
})

void t.test(
  'nodes that wait for the label and misplaced excluded pods are reported; --evict evicts them',
  async (t) => {
    const cluster = await startTestCluster(t)
    const { sandbox } = cluster
    sandbox.create(nodePools, {
      metadata: { name: 'h' },
      spec: { hostNetwork: true, labels: { zone: 'a' } },
    })
    sandbox.create(nodes, {
      metadata: { name: 'waits', labels: { [nodePoolLabel]: 'h', zone: 'mine' } },
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
    t.match(told.out, 'node waits: label zone differs from h: another client has set it')
    t.match(told.out, 'pod default/slipped: excluded from host-network pools, but on has-it')
    const evicted = await check(cluster, { evict: true })
    t.match(evicted.out, 'pod default/slipped on has-it: evicted')
  },
)
