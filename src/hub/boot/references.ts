import { isMirrorPod, type Cursor, type Path } from '../../api/codec/cursor.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import type { Json } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../api/kube/json-at.ts'
import { isTerminal } from '../../api/kube/pod.ts'
import * as resources from '../../api/kube/resources.ts'

/**
 * The effect of a missing object on a pod. `required`: the pod does not start. `optional`: it
 * starts if an API server has answered that the object does not exist, and not while that is
 * unknown. `if-requested`: only some kubelets read it, and the others do not need it.
 */
export type Need = 'required' | 'optional' | 'if-requested'

/** An object that a kubelet reads before it starts the containers of a pod. */
export interface ObjectReference {
  readonly gvr: GVR
  /** Empty for a cluster-scoped object. */
  readonly namespace: string
  /**
   * Empty for all objects of the resource (`listed`): which of them count is the kubelet's
   * decision.
   */
  readonly name: string
  /**
   * How the kubelet reads it: `list`, a list and watch for the one object, its default for what
   * containers use; `get`, by name; `listed`, in a list of all, which it keeps anyway.
   */
  readonly by: 'list' | 'get' | 'listed'
  readonly need: Need
}

/** The same for references to the same object, read in the same way. */
export const keyOf = ({ gvr, namespace, name, by }: ObjectReference): string =>
  `${qualifiedResource(gvr)} ${by} ${namespace}/${name}`

/** An object that a kubelet reads by name, and without which a pod does not start. */
export const requiredObject = (gvr: GVR, namespace: string, name: string): ObjectReference => ({
  gvr,
  namespace,
  name,
  by: 'get',
  need: 'required',
})

/**
 * A token that a kubelet requests for a pod, as in its TokenRequest (k/k
 * pkg/volume/projected/projected.go).
 */
export interface TokenReference {
  readonly namespace: string
  readonly serviceAccount: string
  /** Empty: those of the API server. */
  readonly audiences: readonly string[]
  /**
   * Absent: the API server's default of an hour. The projected volume that admission adds to each
   * pod has 3607, which the API server extends to a year.
   */
  readonly expirationSeconds: number | undefined
}

export interface PodReferences {
  readonly serviceAccount: string
  readonly objects: readonly ObjectReference[]
  readonly tokens: readonly TokenReference[]
  /** Drivers of inline volumes. Those of claims are named in the bound volumes. */
  readonly inlineDrivers: readonly string[]
  /**
   * Signers of the pod's certificates: a kubelet keeps these in memory, and has them issued again
   * when it starts (k/k pkg/kubelet/podcertificate).
   */
  readonly signers: readonly string[]
}

/** Whether the kubelet starts the pod again with the node because an API server has it. */
export function startsAtBoot(pod: Cursor): boolean {
  if (isMirrorPod(pod)) return false
  return (
    !isTerminal(pod.value(['status', 'phase'])) &&
    pod.value(['metadata', 'deletionTimestamp']) === undefined
  )
}

/** All that the references of one pod depend on. */
export const referenceSources: readonly Path[] = [
  ['spec'],
  ['status', 'resourceClaimStatuses'],
  ['status', 'extendedResourceClaimStatus'],
]

/**
 * All objects that a pod refers to by name, each once, without the claims' volumes and their
 * references. Decodes the whole spec at once: reads by path would scan all of it for each
 * variable. Throws a `MalformedBody`.
 */
export function referencesOf(pod: Cursor): PodReferences {
  const { namespace, name: podName } = pod
  const [spec, made, extended] = referenceSources.map((path) => pod.json(path))
  const volumes = listAt(spec, 'volumes')
  const sources = volumes.flatMap((each) => listAt(each, 'projected', 'sources'))
  const reference = ({ gvr, by, need = 'required' }: How, name: string): ObjectReference => {
    const isOfCluster = gvr === resources.runtimeClasses
    return { gvr, namespace: isOfCluster ? '' : namespace, name, by, need }
  }
  const named = fields.flatMap(([path, how]) => {
    const steps = path.split('.')
    return holdersOf(spec, steps).map((of) =>
      reference(
        isOptional(of) ? { ...how, need: 'optional' } : how,
        textAt(of, steps.at(-1) ?? ''),
      ),
    )
  })
  const claims = [
    ...volumes
      .filter((each) => valueAt(each, 'ephemeral', 'volumeClaimTemplate') !== undefined)
      .map((each) => reference(claim, `${podName}-${textAt(each, 'name')}`)),
    // Made from templates, or by the scheduler for what containers request as extended resources.
    ...[...listAt(made), extended].map((each) =>
      reference(deviceClaim, textAt(each, 'resourceClaimName')),
    ),
  ]
  const bundles = sources
    .flatMap((each) => valueAt(each, 'clusterTrustBundle') ?? [])
    .map((each) => {
      const name = textAt(each, 'name')
      // Of a signer there may be none.
      const need = name === '' || isOptional(each) ? 'optional' : 'required'
      return { gvr: resources.trustBundles, namespace: '', name, by: 'listed', need } as const
    })
  const serviceAccount = textAt(spec, 'serviceAccountName') || 'default'
  const texts = (of: readonly Json[], ...path: readonly string[]): string[] => [
    ...new Set(of.map((each) => textAt(each, ...path)).filter((text) => text !== '')),
  ]
  return {
    serviceAccount,
    objects: stricter([...[...named, ...claims].filter(({ name }) => name !== ''), ...bundles]),
    tokens: [
      ...new Map(
        sources
          .flatMap((each) => valueAt(each, 'serviceAccountToken') ?? [])
          .map((token) => tokenReference(namespace, serviceAccount, token))
          .map((token) => [JSON.stringify(token), token]),
      ).values(),
    ],
    inlineDrivers: texts(volumes, 'csi', 'driver'),
    signers: texts(sources, 'podCertificate', 'signerName'),
  }
}

type How = Pick<ObjectReference, 'gvr' | 'by'> & { readonly need?: Need }

const secret: How = { gvr: resources.secrets, by: 'list' }
const mountSecret: How = { gvr: resources.secrets, by: 'get' }
const configMap: How = { gvr: resources.configMaps, by: 'list' }
const claim: How = { gvr: resources.volumeClaims, by: 'get' }
const deviceClaim: How = { gvr: resources.resourceClaims, by: 'get' }

/** Where a pod's spec has the names of objects, in lists in each element. */
const fields: readonly (readonly [path: string, how: How])[] = [
  // A kubelet reads no account for a pod that names none.
  ['serviceAccountName', { gvr: resources.serviceAccounts, by: 'get', need: 'if-requested' }],
  ['runtimeClassName', { gvr: resources.runtimeClasses, by: 'listed' }],
  ...['initContainers', 'containers', 'ephemeralContainers'].flatMap(
    (list) =>
      [
        [`${list}.envFrom.secretRef.name`, secret],
        [`${list}.envFrom.configMapRef.name`, configMap],
        [`${list}.env.valueFrom.secretKeyRef.name`, secret],
        [`${list}.env.valueFrom.configMapKeyRef.name`, configMap],
      ] as const,
  ),
  ['volumes.secret.secretName', secret],
  ['volumes.configMap.name', configMap],
  ['volumes.projected.sources.secret.name', secret],
  ['volumes.projected.sources.configMap.name', configMap],
  ['volumes.persistentVolumeClaim.claimName', claim],
  // Of volumes that a kubelet mounts itself (k/k pkg/volume/util, GetSecretForPod).
  ...['flexVolume', 'cephfs', 'rbd', 'iscsi', 'cinder', 'scaleIO', 'storageos'].map(
    (source) => [`volumes.${source}.secretRef.name`, mountSecret] as const,
  ),
  ['volumes.csi.nodePublishSecretRef.name', mountSecret],
  ['volumes.azureFile.secretName', mountSecret],
  // A kubelet goes on without it if it has the image. Since 1.35 it verifies that the pod may still
  // use the image.
  ['imagePullSecrets.name', { ...secret, need: 'optional' }],
  ['resourceClaims.resourceClaimName', deviceClaim],
]

/** What in `spec` has the member at the end of a path. */
const holdersOf = (spec: Json | undefined, path: readonly string[]): readonly Json[] =>
  path.slice(0, -1).reduce<Json[]>(
    // A list is flattened to its elements.
    (found, step) => found.flatMap((each) => (valueAt(each, step) as Json | Json[]) ?? []),
    spec === undefined ? [] : [spec],
  )

const isOptional = (of: Json): boolean => valueAt(of, 'optional') === true

/** Of two references to one object the stricter one counts. */
function stricter(all: readonly ObjectReference[]): readonly ObjectReference[] {
  const found = new Map<string, ObjectReference>()
  for (const each of all)
    if (each.need === 'required' || !found.has(keyOf(each))) found.set(keyOf(each), each)
  return [...found.values()]
}

function tokenReference(namespace: string, serviceAccount: string, token: Json): TokenReference {
  const audience = textAt(token, 'audience')
  const seconds = valueAt(token, 'expirationSeconds')
  return {
    namespace,
    serviceAccount,
    audiences: audience === '' ? [] : [audience],
    expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
  }
}

/** '' where there is none. */
export function stringAt(cursor: Cursor, path: Path): string {
  const value = cursor.value(path)
  return typeof value === 'string' ? value : ''
}
