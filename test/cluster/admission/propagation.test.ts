import t from 'tap'
import type { ClusterLookup } from '../../../src/cluster/admission/lookup.ts'
import { onHostNetworkOfPool } from '../../../src/cluster/admission/propagation.ts'
import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { valueAt } from '../../../src/api/kube/json-at.ts'
import { lookupOf, poolNamed } from './pool-lookup.ts'

const lookup: ClusterLookup = {
  ...lookupOf(poolNamed('host', { hostNetwork: true }), poolNamed('standard')),
  nodeLabels: async (name) =>
    ({
      unread: 'unknown' as const,
    })[name],
}

const pod = (spec: JsonObject, labels: Json = {}): JsonObject => ({
  metadata: { name: 'a', labels },
  spec: { containers: [], ...spec },
})

const inPool = { nodeSelector: { 'apps.openyurt.io/nodepool': 'host' } }

const required = (...nodeSelectorTerms: Json[]): JsonObject => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  },
})

const onNode = (...values: string[]) => ({
  matchFields: [{ key: 'metadata.name', operator: 'In', values }],
})

void t.test('a pod that is ambiguous or could not run stays as is, with a warning', async (t) => {
  const port = (ports: JsonObject) => ({ ...inPool, containers: [{ name: 'a', ports: [ports] }] })
  const cases: Readonly<Record<string, readonly [JsonObject, RegExp]>> = {
    'no such pool': [
      pod({}, { 'apps.openyurt.io/pool-name': 'gone' }),
      /there is no NodePool gone/,
    ],
    'a pool that cannot be read': [
      pod({}, { 'apps.openyurt.io/pool-name': 'unread' }),
      /could not be read now/,
    ],
    'a node that cannot be read': [
      pod(required(onNode('unread'))),
      /node .* could not be read now/,
    ],
    'two pools': [
      pod(inPool, { 'apps.openyurt.io/pool-name': 'standard' }),
      /several NodePools: standard, host/,
    ],
    'a user namespace': [pod({ ...inPool, hostUsers: false }), /user namespaces/],
    'a hostname': [pod({ ...inPool, hostnameOverride: 'a' }), /hostnameOverride/],
    Windows: [pod({ ...inPool, os: { name: 'windows' } }), /for Windows/],
    'a sysctl of the network': [
      pod({
        ...inPool,
        securityContext: { sysctls: [{ name: 'net.core.somaxconn', value: '1' }] },
      }),
      /sets net\.core\.somaxconn/,
    ],
    'a port that is another on the host': [
      pod(port({ containerPort: 80, hostPort: 8080 })),
      /hostPort is not its containerPort/,
    ],
    'such a port of an init container': [
      pod({ ...inPool, initContainers: port({ containerPort: 80, hostPort: 8080 }).containers }),
      /hostPort is not its containerPort/,
    ],
  }
  for (const [what, [before, said]] of Object.entries(cases)) {
    const { object, warnings } = await onHostNetworkOfPool(before, lookup)
    t.equal(object, before, what)
    t.match(warnings.join(), said, what)
  }
  for (const ports of [{ containerPort: 80, hostPort: 80 }, { containerPort: 80 }]) {
    const { object } = await onHostNetworkOfPool(pod(port(ports)), lookup)
    t.equal(valueAt(object, 'spec', 'hostNetwork'), true)
  }
})
