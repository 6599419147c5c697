import type { BootVerdict } from '../../src/hub/boot/verdict.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { customResourceDefinitions } from '../../src/api/kube/resources.ts'
import type { Client } from './client.ts'
import { csiNodes, nodeName, podsOfNode, type CloudServer } from './cloud.ts'
import type { TestHub } from './hub.ts'
import { until } from './until.ts'

export {
  nodes,
  persistentVolumes as volumes,
  resourceClaims,
  volumeAttachments as attachments,
  volumeClaims as claims,
} from '../../src/api/kube/resources.ts'

/** A kubelet's default Accept header. */
const accept = 'application/vnd.kubernetes.protobuf,application/json'

export const kubeletOf = (hub: TestHub): Client =>
  hub.as('kubelet', { accept, encoding: 'protobuf' })

/** A pod of the node that mounts these sources, each as a volume. */
export const podWith = (name: string, ...sources: JsonObject[]): JsonObject => ({
  metadata: { name, namespace: 'default' },
  spec: {
    nodeName,
    containers: [{ name: 'main', image: 'registry.example/main:1' }],
    volumes: sources.map((source, at) => ({ name: `v${at}`, ...source })),
  },
})

/** Creates the CSINode that every kubelet creates. */
export function addCsiNode(cloud: CloudServer): void {
  cloud.sandbox.create(csiNodes, { metadata: { name: nodeName }, spec: { drivers: [] } })
}

/** A kubelet's requests at its start, before any pod. */
export const firstQuestions = [
  `/api/v1/nodes?fieldSelector=metadata.name%3D${nodeName}`,
  podsOfNode,
  '/api/v1/services?fieldSelector=spec.clusterIP%21%3DNone',
  '/apis/storage.k8s.io/v1/csidrivers',
  '/apis/node.k8s.io/v1/runtimeclasses',
  `/apis/storage.k8s.io/v1/csinodes/${nodeName}`,
]

/** Sends a kubelet's first requests; resolves to the version of its list of pods. */
export async function startUp(kubelet: Client): Promise<string> {
  for (const path of firstQuestions) await kubelet.get(path)
  return (await kubelet.list(podsOfNode)).resourceVersion
}

/** The hub's boot verdict, made since the call: a report may be a little old. */
export async function verdictOf(hub: TestHub): Promise<BootVerdict> {
  const called = Date.now()
  return until('a boot verdict made since', async () => {
    const { status, body } = await hub.ops.get('/inspect/boot')
    if (status !== 200) throw new Error(`${status} ${body.toString()}`)
    const verdict = JSON.parse(body.toString()) as BootVerdict
    return Date.parse(verdict.at) >= called && verdict
  })
}

/** The problems of a verdict as text. */
export const problemsIn = ({ node, pods }: BootVerdict): string[] => [
  ...node.problems.map(({ reason, resource }) => `node: ${reason} ${resource}`),
  ...pods.flatMap(({ name, problems }) =>
    problems.map((each) => `${name}: ${each.reason} ${each.resource} ${each.name}`),
  ),
]

/** Resolves with the first verdict that satisfies `holds`. */
export async function verdictUntil(
  hub: TestHub,
  holds: (verdict: BootVerdict) => boolean,
): Promise<BootVerdict> {
  let last: BootVerdict | undefined
  const look = async (): Promise<BootVerdict | false> => {
    last = await verdictOf(hub)
    return holds(last) && last
  }
  return until(`a boot verdict for which ${holds}`, look, { describe: () => last })
}

/** Claims in the versions of every release, none of which the sandbox has of itself. */
const claimDefinition: JsonObject = {
  metadata: { name: 'resourceclaims.resource.k8s.io' },
  spec: {
    group: 'resource.k8s.io',
    scope: 'Namespaced',
    names: {
      kind: 'ResourceClaim',
      plural: 'resourceclaims',
      singular: 'resourceclaim',
      listKind: 'ResourceClaimList',
    },
    versions: ['v1', 'v1beta1', 'v1alpha3', 'v1alpha2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    })),
  },
}

export function addResourceClaims({ sandbox }: CloudServer): void {
  sandbox.create(customResourceDefinitions, claimDefinition)
}
