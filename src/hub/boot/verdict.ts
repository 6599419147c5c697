import { TimeSlices } from '../../base/time-slices.ts'
import { cursorOf } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { tokenIn } from '../../api/codec/token-request.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import * as resources from '../../api/kube/resources.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import type { NamedObject } from '../store/named-object.ts'
import { StoreFailure } from '../store/store.ts'
import { tokenResource, tokenName } from '../store/token-name.ts'
import { podsOf, type KubeletCache, type CollectionQuery } from './kubelet-cache.ts'
import { cursorOfFound, podDependencies, type ResolvedReference } from './pod-dependencies.ts'
import { referencesOf, stringAt, whyNotForBoot, type ObjectReference } from './references.ts'
import type { TokenReference } from './references.ts'

/**
 * Why something would not be there after a power cut. `missing`: nobody has been told of it;
 * `absent`: the cloud says that there is none; `damaged`: it is stored and cannot be read;
 * `forbidden`: the cloud refuses to tell; `expired`: of a token; `unbound`: a claim without a
 * volume; `unattached`: a volume that is not attached to the node.
 */
export const reasons = [
  'missing',
  'absent',
  'damaged',
  'forbidden',
  'expired',
  'unbound',
  'unattached',
] as const

export type Reason = (typeof reasons)[number]

/** One thing that is in the way. It names objects and says nothing of what is in them. */
export interface Problem {
  readonly reason: Reason
  /** `secrets`, `volumeattachments.storage.k8s.io`. */
  readonly resource: string
  /** Empty for what is cluster-scoped. */
  readonly namespace: string
  readonly name: string
  /** For people. */
  readonly message: string
}

/** Something known that the cloud has not confirmed for long, though it could have. */
export interface StaleObject {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  /** As times are in the API. */
  readonly confirmedAt: string
}

export interface PodVerdict {
  readonly namespace: string
  readonly name: string
  readonly ready: boolean
  readonly problems: readonly Problem[]
  readonly old: readonly StaleObject[]
  /** When the first of its tokens expires; absent where it has none. */
  readonly tokensUntil?: string
}

export interface NodeVerdict {
  readonly name: string
  readonly ready: boolean
  readonly problems: readonly Problem[]
}

/** Whether a node, and each of its pods, would come back now without a link. */
export interface BootVerdict {
  /** The node as such, and every pod. */
  readonly ready: boolean
  /** When it was judged. */
  readonly at: string
  readonly node: NodeVerdict
  /** Without mirror pods, which need nothing, and those that have ended or are being deleted. */
  readonly pods: readonly PodVerdict[]
  /** When the first token of a pod expires: from then on this pod would not come back. */
  readonly tokensUntil?: string
}

/** What asking for an object, as the hub does to keep it fresh, came to last. */
export interface RefreshResult {
  readonly outcome: 'confirmed' | 'absent' | 'forbidden' | 'failed'
  /** When the cloud last showed it, in milliseconds since the epoch. */
  readonly confirmedAt?: number
}

export interface VerdictInputs {
  readonly nodeName: string
  readonly cache: KubeletCache
  /** In milliseconds since the epoch. */
  readonly now: number
  readonly lastRefresh: (of: ObjectReference) => RefreshResult | undefined
  /** Before this moment is old; nothing is where nobody could be asked. */
  readonly oldBefore: number
}

/**
 * Judges by what is stored what a kubelet would find that starts now, with the cloud gone (k/k
 * pkg/kubelet: node, pods, services, drivers and runtime classes before any pod; then, for each
 * pod, all that it refers to). Pods are judged in slices, each by what is stored by then.
 */
export async function bootVerdict(facts: VerdictInputs): Promise<BootVerdict> {
  const slices = new TimeSlices()
  const problems = problemsOfNode(facts)
  const pods: PodVerdict[] = []
  try {
    using listed = facts.cache.collection(podsOf(facts.nodeName))
    if (listed) {
      for (const pod of listed.objects) {
        const verdict = podVerdictSafely(pod, listed, facts)
        if (verdict) pods.push(verdict)
        await slices.pause()
      }
    }
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
    problems.push(problem('damaged', listOf(resources.pods), 'the list of pods cannot be read'))
  }
  const node = { name: facts.nodeName, ready: problems.length === 0, problems }
  return {
    ready: node.ready && pods.every(({ ready }) => ready),
    at: time(facts.now),
    node,
    pods,
    ...earliest(pods.map(({ tokensUntil }) => tokensUntil)),
  }
}

/** The verdict where there can be none. */
export const unknownVerdict = (name: string, now: number): BootVerdict => ({
  ready: false,
  at: time(now),
  node: {
    name,
    ready: false,
    problems: [problem('damaged', listOf(resources.pods), 'the cache cannot be judged')],
  },
  pods: [],
})

/**
 * What a kubelet waits for before it looks at any pod (k/k pkg/kubelet/kubelet.go), each with why
 * it does.
 */
const nodeLists = (
  nodeName: string,
): readonly { queries: readonly CollectionQuery[]; without: string }[] => [
  {
    queries: [{ gvr: resources.nodes, fieldSelector: `metadata.name=${nodeName}` }],
    without: 'the kubelet asks for its pods only once it knows its node',
  },
  { queries: [podsOf(nodeName)], without: 'the kubelet starts no pod of the API server' },
  {
    // Kubelets since 1.31 leave out services without an address.
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
  using known = cache.collection(query)
  return known !== undefined
}

function problemsOfNode({ cache, nodeName }: VerdictInputs): Problem[] {
  const problems: Problem[] = []
  for (const { queries, without } of nodeLists(nodeName)) {
    if (queries.some((query) => isKnown(query, cache))) continue
    const [{ gvr }] = queries as [CollectionQuery]
    problems.push(problem('missing', listOf(gvr), `never listed, or unfit: ${without}`))
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

/** `undefined` for a pod that does not start again. */
function podVerdictSafely(
  object: ApiObject,
  kind: { readonly encoding: Encoding; readonly gvk: GVK },
  facts: VerdictInputs,
): PodVerdict | undefined {
  try {
    return podVerdict(object, kind, facts)
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    const { namespace, name } = object
    const damaged = problem(
      'damaged',
      { gvr: resources.pods, namespace, name },
      'it cannot be understood',
    )
    return { namespace, name, ready: false, problems: [damaged], old: [] }
  }
}

function podVerdict(
  object: ApiObject,
  { encoding, gvk }: { readonly encoding: Encoding; readonly gvk: GVK },
  facts: VerdictInputs,
): PodVerdict | undefined {
  const pod = cursorOf(encoding, gvk, object)
  if (whyNotForBoot(pod) !== undefined) return undefined
  const references = referencesOf(pod)
  const needs = podDependencies(references, object, facts.cache, facts.nodeName)
  const tokens = needs.tokens.map((token) => tokenVerdict(token, object, facts))
  const problems = [
    ...needs.objects.flatMap((needed) => problemOf(needed, facts.lastRefresh(needed)) ?? []),
    ...tokens.flatMap((token) => token.problem ?? []),
    ...references.signers.map((signer) => missingCertificate(object, signer)),
  ]
  return {
    namespace: object.namespace,
    name: object.name,
    ready: problems.length === 0,
    problems,
    old: needs.objects.flatMap((needed) => oldIn(needed, facts)),
    ...earliest(tokens.map(({ until }) => until)),
  }
}

function problemOf(
  needed: ResolvedReference,
  asked: RefreshResult | undefined,
): Problem | undefined {
  const { found, need, gvr } = needed
  if (needed.damaged) return problem('damaged', needed, 'what is stored of it cannot be read')
  if (need === 'if-asked') return undefined
  if (found === undefined && asked?.outcome === 'forbidden') {
    return problem('forbidden', needed, 'the API server does not let this node read it')
  }
  const absent = found === 'absent' || (found === undefined && asked?.outcome === 'absent')
  if (absent) {
    return need === 'optional'
      ? undefined
      : problem('absent', needed, 'it does not exist in the cloud either')
  }
  if (found === undefined) return problem('missing', needed, 'it is not in the cache')
  if (gvr === resources.volumeClaims && stringAt(orThrow(needed), ['spec', 'volumeName']) === '') {
    return problem('unbound', needed, 'the claim is bound to no volume')
  }
  if (
    gvr === resources.volumeAttachments &&
    orThrow(needed).value(['status', 'attached']) !== true
  ) {
    return problem('unattached', needed, 'the volume is not attached to this node')
  }
  return undefined
}

function orThrow({ found }: ResolvedReference) {
  const object = cursorOfFound(found)
  if (!object) throw new Error('only what is known is looked into')
  return object
}

function oldIn(
  needed: ResolvedReference,
  { lastRefresh, oldBefore }: VerdictInputs,
): StaleObject[] {
  if (typeof needed.found !== 'object' || needed.need === 'if-asked') return []
  const confirmedAt = Math.max(needed.confirmedAt ?? 0, lastRefresh(needed)?.confirmedAt ?? 0)
  if (confirmedAt === 0 || confirmedAt >= oldBefore) return []
  const { gvr, namespace, name } = needed
  return [{ resource: qualifiedResource(gvr), namespace, name, confirmedAt: time(confirmedAt) }]
}

/**
 * Until when a token lasts that the cloud has given the kubelet for a pod, or why there is none.
 */
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
    const why = `${whose} was never seen: a kubelet asks again within a day, or when it is started again`
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

const listOf = (gvr: GVR): NamedObject => ({ gvr, namespace: '', name: '' })

const problem = (
  reason: Reason,
  { gvr, namespace, name }: NamedObject,
  message: string,
): Problem => ({
  reason,
  resource: qualifiedResource(gvr),
  namespace,
  name,
  message,
})

const time = (ms: number): string => new Date(ms).toISOString()

/** Of times in one spelling. */
function earliest(times: readonly (string | undefined)[]): { readonly tokensUntil?: string } {
  const [first] = times.flatMap((each) => each ?? []).toSorted()
  return first === undefined ? {} : { tokensUntil: first }
}
