import { TimeSlices } from '../../base/time-slices.ts'
import { tokenIn } from '../../api/codec/token-request.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import * as resources from '../../api/kube/resources.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { StoreFailure } from '../store/store.ts'
import { tokenResource, tokenName } from '../store/token-name.ts'
import { podsOf, type KubeletCache, type CollectionQuery } from './kubelet-cache.ts'
import { bootPods, type NodeRecords } from './node-dependencies.ts'
import { isSettled, type PodDependencies, type ResolvedReference } from './pod-dependencies.ts'
import type { RefusedRead } from './refused-reads.ts'
import type { ObjectReference, TokenReference } from './references.ts'

/**
 * Why an object that a pod needs would be missing after a power cut. `missing`: it was never read;
 * `absent`: an API server has answered that it does not exist; `damaged`: it is stored and cannot
 * be read; `forbidden`: the API server does not let the node read it; `expired`: a token has;
 * `unbound`: a claim has no volume; `unattached`: a volume is not attached to the node.
 */
export const podReasons = [
  'missing',
  'absent',
  'damaged',
  'forbidden',
  'expired',
  'unbound',
  'unattached',
] as const

/** Besides, of a node: `refused`: a component was answered 503 instead of it, and not since. */
export type Reason = (typeof podReasons)[number] | 'refused'

/** One reason against a boot. It names objects and shows nothing of their contents. */
export interface Problem {
  readonly reason: Reason
  /** `secrets`, `volumeattachments.storage.k8s.io`. */
  readonly resource: string
  /** Empty for a cluster-scoped object. */
  readonly namespace: string
  readonly name: string
  /** For people. */
  readonly message: string
}

/** A stored object that no API server has confirmed for long, though one was reachable. */
export interface StaleObject {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  /** RFC 3339. */
  readonly confirmedAt: string
}

export interface PodVerdict {
  readonly namespace: string
  readonly name: string
  readonly ready: boolean
  readonly problems: readonly Problem[]
  readonly old: readonly StaleObject[]
  /** When the first of its tokens expires; absent where the pod has none. */
  readonly tokensUntil?: string
}

export interface NodeVerdict {
  readonly name: string
  readonly ready: boolean
  /** The kubelet has read neither its node nor its pods yet: the hub has nothing to record. */
  readonly unread: boolean
  readonly problems: readonly Problem[]
}

/** Whether a node and each of its pods would come back now without a link. */
export interface BootVerdict {
  /** The node as such, and every pod. */
  readonly ready: boolean
  /** When the verdict was made. */
  readonly at: string
  readonly node: NodeVerdict
  /** Without mirror pods, which need nothing, and those that have ended or are being deleted. */
  readonly pods: readonly PodVerdict[]
  /** When the first token of a pod expires: from then on that pod would not come back. */
  readonly tokensUntil?: string
}

/** The result of the last refresh of an object. */
export interface RefreshResult {
  readonly outcome: 'confirmed' | 'absent' | 'forbidden' | 'failed'
  /** When an API server last confirmed the object, in milliseconds since the epoch. */
  readonly confirmedAt?: number
}

export interface VerdictInputs extends NodeRecords {
  /** In milliseconds since the epoch. */
  readonly now: number
  readonly lastRefresh: (of: ObjectReference) => RefreshResult | undefined
  /** Objects confirmed before this are stale; 0 while no API server is reachable. */
  readonly oldBefore: number
  /** The reads that the node's components are refused at present. */
  readonly refused: readonly RefusedRead[]
}

/**
 * Decides by the store alone which objects a kubelet that starts now would find offline (k/k
 * pkg/kubelet: node, pods, services, drivers and runtime classes before any pod; then, for each
 * pod, all that it refers to). Goes through the pods in slices of time, each pod by the store's
 * content at that moment. What the other components of the node need is not known beforehand:
 * each counts while it is refused what it reads.
 */
export async function bootVerdict(inputs: VerdictInputs): Promise<BootVerdict> {
  const slices = new TimeSlices()
  const problems = problemsOfNode(inputs)
  const pods: PodVerdict[] = []
  try {
    const listed = inputs.cache.collection(podsOf(inputs.nodeName))
    if (listed) {
      const walk = bootPods(listed, inputs, {
        read: (needs, pod) => podVerdict(needs, pod, inputs),
        malformed: malformedPod,
      })
      for (const verdict of walk) {
        if (verdict) pods.push(verdict)
        await slices.pause()
      }
    }
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
    problems.push(problem('damaged', listOf(resources.pods), 'the list of pods cannot be read'))
  }
  const unread = inputs.refused.length === 0 && isUnread(inputs)
  problems.push(
    ...refusedProblems(inputs.refused, [...problems, ...pods.flatMap((pod) => pod.problems)]),
  )
  const node = { name: inputs.nodeName, ready: problems.length === 0, unread, problems }
  return {
    ready: node.ready && pods.every(({ ready }) => ready),
    at: time(inputs.now),
    node,
    pods,
    ...earliest(pods.map(({ tokensUntil }) => tokensUntil)),
  }
}

/** The verdict when the store cannot be read. */
export const unknownVerdict = (name: string, now: number): BootVerdict => ({
  ready: false,
  at: time(now),
  node: {
    name,
    ready: false,
    unread: false,
    problems: [problem('damaged', listOf(resources.pods), 'the cache cannot be read')],
  },
  pods: [],
})

const ownNode = (nodeName: string): CollectionQuery => ({
  gvr: resources.nodes,
  fieldSelector: `metadata.name=${nodeName}`,
})

/**
 * The lists that a kubelet waits for before it starts any pod (k/k pkg/kubelet/kubelet.go), each
 * with the consequence of its absence.
 */
const nodeLists = (
  nodeName: string,
): readonly { queries: readonly CollectionQuery[]; without: string }[] => [
  {
    queries: [ownNode(nodeName)],
    without: 'the kubelet lists its pods only once it knows its node',
  },
  { queries: [podsOf(nodeName)], without: 'the kubelet starts no pod of the API server' },
  {
    // Kubelets since 1.31 list only services with an address.
    queries: [
      { gvr: resources.services },
      { gvr: resources.services, fieldSelector: 'spec.clusterIP!=None' },
    ],
    without: 'the kubelet starts no container before it knows the services',
  },
  { queries: [{ gvr: resources.csiDrivers }], without: 'the kubelet mounts no CSI volume' },
  {
    queries: [{ gvr: resources.runtimeClasses }],
    without: 'the kubelet starts no pod with a runtime class',
  },
]

function isKnown(query: CollectionQuery, cache: KubeletCache): boolean {
  const known = cache.collection(query)
  return known !== undefined
}

function problemsOfNode({ cache, nodeName }: VerdictInputs): Problem[] {
  const problems: Problem[] = []
  for (const { queries, without } of nodeLists(nodeName)) {
    if (queries.some((query) => isKnown(query, cache))) continue
    const [{ gvr }] = queries as [CollectionQuery]
    problems.push(problem('missing', listOf(gvr), `never listed, or not stored: ${without}`))
  }
  const own = { gvr: resources.nodes, namespace: '', name: nodeName }
  const node = cache.object(own.gvr, '', nodeName)
  if (node === 'absent') {
    problems.push(problem('absent', own, 'the cloud knows no such node'))
  } else if (node === undefined && problems.every(({ resource }) => resource !== 'nodes')) {
    problems.push(problem('missing', own, 'a list of it is stored, and the node is not in it'))
  }
  const csi = { gvr: resources.csiNodes, namespace: '', name: nodeName }
  if (typeof cache.object(csi.gvr, '', nodeName) !== 'object') {
    problems.push(
      problem('missing', csi, 'a kubelet that cannot read it says that it is not ready'),
    )
  }
  return problems
}

const isUnread = ({ cache, nodeName }: VerdictInputs): boolean =>
  !isKnown(ownNode(nodeName), cache) && !isKnown(podsOf(nodeName), cache)

/** Without what the verdict already misses in the cache. */
const refusedProblems = (
  refused: readonly RefusedRead[],
  missed: readonly Problem[],
): readonly Problem[] =>
  refused
    .filter((read) => !missed.some((each) => isSame(each, read)))
    .map(({ component, ...what }) => ({
      reason: 'refused',
      ...what,
      message: `${component} was answered 503, and has not got it since`,
    }))

const isSame = (one: Problem, { resource, namespace, name }: RefusedRead): boolean =>
  one.resource === resource && one.namespace === namespace && one.name === name

function malformedPod({ namespace, name }: ApiObject): PodVerdict {
  const pod = { gvr: resources.pods, namespace, name }
  const damaged = problem('damaged', pod, 'it cannot be understood')
  return { namespace, name, ready: false, problems: [damaged], old: [] }
}

function podVerdict(needs: PodDependencies, pod: ApiObject, inputs: VerdictInputs): PodVerdict {
  const tokens = needs.tokens.map((token) => tokenVerdict(token, pod, inputs))
  const problems = [
    ...needs.objects.flatMap((needed) => problemOf(needed, inputs.lastRefresh(needed)) ?? []),
    ...tokens.flatMap((token) => token.problem ?? []),
    ...needs.signers.map((signer) => missingCertificate(pod, signer)),
  ]
  return {
    namespace: pod.namespace,
    name: pod.name,
    ready: problems.length === 0,
    problems,
    old: needs.objects.flatMap((needed) => oldIn(needed, inputs)),
    ...earliest(tokens.map(({ until }) => until)),
  }
}

function problemOf(
  needed: ResolvedReference,
  refresh: RefreshResult | undefined,
): Problem | undefined {
  const { found, need, gvr } = needed
  if (needed.damaged) return problem('damaged', needed, 'its record cannot be read')
  if (need === 'if-requested') return undefined
  if (found === undefined && refresh?.outcome === 'forbidden') {
    return problem('forbidden', needed, 'the API server does not let this node read it')
  }
  const absent = found === 'absent' || (found === undefined && refresh?.outcome === 'absent')
  if (absent) {
    return need === 'optional'
      ? undefined
      : problem('absent', needed, 'it does not exist in the cloud either')
  }
  if (found === undefined) return problem('missing', needed, 'it is not in the cache')
  if (isSettled(needed)) return undefined
  return gvr === resources.volumeClaims
    ? problem('unbound', needed, 'the claim is bound to no volume')
    : problem('unattached', needed, 'the volume is not attached to this node')
}

function oldIn(
  needed: ResolvedReference,
  { lastRefresh, oldBefore }: VerdictInputs,
): StaleObject[] {
  if (typeof needed.found !== 'object' || needed.need === 'if-requested') return []
  const confirmedAt = Math.max(needed.confirmedAt ?? 0, lastRefresh(needed)?.confirmedAt ?? 0)
  if (confirmedAt === 0 || confirmedAt >= oldBefore) return []
  const { gvr, namespace, name } = needed
  return [{ resource: qualifiedResource(gvr), namespace, name, confirmedAt: time(confirmedAt) }]
}

/** When a token that the kubelet was issued for a pod expires, or why there is none. */
function tokenVerdict(
  { namespace, serviceAccount, audiences, expirationSeconds }: TokenReference,
  pod: ApiObject,
  { cache, now }: VerdictInputs,
): { readonly until?: string; readonly problem?: Problem } {
  const boundObject = { kind: 'Pod', name: pod.name, uid: pod.uid }
  const kept = tokenName({ serviceAccount, audiences, expirationSeconds, boundObject })
  const found = cache.object(tokenResource, namespace, kept)
  const what = { gvr: tokenResource, namespace, name: serviceAccount }
  const whose = audiences.length === 0 ? 'the token' : `the token for ${audiences.join(', ')}`
  if (typeof found !== 'object') {
    const why = `${whose} was never seen: a kubelet requests it again within a day, or when it is started again`
    return { problem: problem('missing', what, why) }
  }
  const expires = claimTimeMs(claimsOf(tokenIn(found))?.claims['exp'])
  if (expires === undefined || expires <= now) {
    return { problem: problem('expired', what, `${whose} has expired`) }
  }
  return { until: time(expires) }
}

const missingCertificate = ({ namespace }: ApiObject, signer: string): Problem =>
  problem(
    'missing',
    { gvr: certificateRequests, namespace, name: signer },
    'a kubelet has the certificate of the pod issued anew when it starts, which only the cloud can do',
  )

const certificateRequests: GVR = {
  group: 'certificates.k8s.io',
  version: 'v1beta1',
  resource: 'podcertificaterequests',
}

type Named = Pick<ObjectReference, 'gvr' | 'namespace' | 'name'>

const listOf = (gvr: GVR): Named => ({ gvr, namespace: '', name: '' })

const problem = (reason: Reason, { gvr, namespace, name }: Named, message: string): Problem => ({
  reason,
  resource: qualifiedResource(gvr),
  namespace,
  name,
  message,
})

const time = (ms: number): string => new Date(ms).toISOString()

/** The earliest of times in the same format. */
function earliest(times: readonly (string | undefined)[]): { readonly tokensUntil?: string } {
  const [first] = times.flatMap((each) => each ?? []).toSorted()
  return first === undefined ? {} : { tokensUntil: first }
}
