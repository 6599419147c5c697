import type { GVR } from '../../api/kube/gvk.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import * as resources from '../../api/kube/resources.ts'
import { tokenResource } from '../store/token-name.ts'
import type { NeededObject, NeededToken, NodeNeeds, PodNeeds } from './needs.ts'
import type { ObjectReference } from './references.ts'
import type { RefusedRead } from './refused-reads.ts'

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

export interface VerdictInputs {
  readonly nodeName: string
  readonly needs: NodeNeeds
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
 * pod, all that it refers to). What the other components of the node need is not known beforehand:
 * each counts while it is refused what it reads.
 */
export function bootVerdict(inputs: VerdictInputs): BootVerdict {
  const { nodeName, needs, refused } = inputs
  const problems = problemsOfNode(needs)
  const all = Array.isArray(needs.pods) ? needs.pods : []
  const pods = all.map((pod: PodNeeds) => podVerdict(pod, inputs))
  const isUnread = needs.pods === undefined && needs.node[0]?.state === undefined
  const unread = refused.length === 0 && isUnread
  problems.push(...refusedProblems(refused, [...problems, ...pods.flatMap((pod) => pod.problems)]))
  const node = { name: nodeName, ready: problems.length === 0, unread, problems }
  return {
    ready: node.ready && pods.every(({ ready }) => ready),
    at: time(inputs.now),
    node,
    pods,
    ...earliest(pods.map(({ tokensUntil }) => tokensUntil)),
  }
}

/** What a kubelet does without what it reads before any pod (k/k pkg/kubelet/kubelet.go). */
const consequences: ReadonlyMap<GVR, string> = new Map([
  [resources.nodes, 'the kubelet lists its pods only once it knows its node'],
  [resources.services, 'the kubelet starts no container before it knows the services'],
  [resources.csiDrivers, 'the kubelet mounts no CSI volume'],
  [resources.runtimeClasses, 'the kubelet starts no pod with a runtime class'],
  [resources.csiNodes, 'a kubelet that cannot read it says that it is not ready'],
])

const notRead = {
  missing: 'never read, or not stored',
  absent: 'an API server has answered that it does not exist',
  damaged: 'its record cannot be read',
}

function problemsOfNode({ node, pods }: NodeNeeds): Problem[] {
  const problems = node
    .filter(({ state }) => state !== 'final')
    .map((needed) => {
      const reason =
        needed.state === 'absent' || needed.state === 'damaged' ? needed.state : 'missing'
      const without = consequences.get(needed.gvr) ?? ''
      return problem(reason, needed, `${notRead[reason]}: ${without}`)
    })
  const list = { gvr: resources.pods, namespace: '', name: '' }
  if (pods === 'damaged') problems.push(problem(pods, list, 'the list of pods cannot be read'))
  else if (!pods) {
    const why = 'never listed, or not stored: the kubelet starts no pod of the API server'
    problems.push(problem('missing', list, why))
  }
  return problems
}

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

function podVerdict(pod: PodNeeds, inputs: VerdictInputs): PodVerdict {
  const { namespace, name, objects, tokens, signers } = pod
  const own = { gvr: resources.pods, namespace, name }
  const problems = [
    ...(pod.malformed ? [problem('damaged', own, 'it cannot be understood')] : []),
    ...objects.flatMap((needed) => problemOf(needed, inputs.lastRefresh(needed)) ?? []),
    ...tokens.flatMap((token) => problemOfToken(token, inputs.now) ?? []),
    ...signers.map((signer) => missingCertificate(namespace, signer)),
  ]
  const valid = tokens.flatMap(({ expiresAt = 0 }) => (expiresAt > inputs.now ? expiresAt : []))
  return {
    namespace,
    name,
    ready: problems.length === 0,
    problems,
    old: objects.flatMap((needed) => oldIn(needed, inputs)),
    ...earliest(valid.map(time)),
  }
}

function problemOf(needed: NeededObject, refresh: RefreshResult | undefined): Problem | undefined {
  const { state, need, gvr } = needed
  if (state === 'damaged') return problem('damaged', needed, 'its record cannot be read')
  if (need === 'if-requested' || state === 'final') return undefined
  if (state === 'pending') {
    return gvr === resources.volumeClaims
      ? problem('unbound', needed, 'the claim is bound to no volume')
      : problem('unattached', needed, 'the volume is not attached to this node')
  }
  const outcome = state ?? refresh?.outcome
  if (outcome === 'forbidden')
    return problem('forbidden', needed, 'the API server does not let this node read it')
  if (outcome !== 'absent') return problem('missing', needed, 'it is not in the cache')
  if (need === 'optional') return undefined
  return problem('absent', needed, 'it does not exist in the cloud either')
}

function oldIn(needed: NeededObject, { lastRefresh, oldBefore }: VerdictInputs): StaleObject[] {
  const { gvr, namespace, name, state, need } = needed
  if ((state !== 'final' && state !== 'pending') || need === 'if-requested') return []
  const confirmedAt = Math.max(needed.confirmedAt, lastRefresh(needed)?.confirmedAt ?? 0)
  if (confirmedAt === 0 || confirmedAt >= oldBefore) return []
  return [{ resource: qualifiedResource(gvr), namespace, name, confirmedAt: time(confirmedAt) }]
}

function problemOfToken(token: NeededToken, now: number): Problem | undefined {
  const { namespace, serviceAccount, audiences, expiresAt } = token
  const what = { gvr: tokenResource, namespace, name: serviceAccount }
  const whose = audiences.length === 0 ? 'the token' : `the token for ${audiences.join(', ')}`
  if (expiresAt === undefined) {
    const why = `${whose} was never seen: a kubelet requests it again within a day, or when it is started again`
    return problem('missing', what, why)
  }
  return expiresAt > now ? undefined : problem('expired', what, `${whose} has expired`)
}

const missingCertificate = (namespace: string, signer: string): Problem =>
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
