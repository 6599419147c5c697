import { createHash } from 'node:crypto'
import { cursorOf, type Cursor, type Path } from '../../api/codec/cursor.ts'
import * as resources from '../../api/kube/resources.ts'
import { StoreFailure } from '../store/store.ts'
import type { CachedObject, KubeletCache, CollectionQuery } from './kubelet-cache.ts'
import {
  requiredObject,
  stringAt,
  type ObjectReference,
  type PodReferences,
  type TokenReference,
} from './references.ts'

/** The objects that a pod needs from the API server before its containers start. */
export interface PodDependencies {
  readonly objects: readonly ResolvedReference[]
  readonly tokens: readonly TokenReference[]
  /** See `PodReferences`. */
  readonly signers: readonly string[]
}

export interface ResolvedReference extends ObjectReference {
  /**
   * 'absent': an API server has answered that it does not exist, or a list of all is stored;
   * `undefined`: not known.
   */
  readonly found: CachedObject | 'absent' | undefined
  /** When an API server last confirmed it, where the store has that. */
  readonly confirmedAt?: number
  /** The stored object cannot be read. */
  readonly damaged?: true
}

/**
 * Resolves the references of a pod, and those of the objects that they name: the volume that a
 * claim is bound to, its attachment to the node, its secrets, the tokens that its driver wants.
 */
export function podDependencies(
  { objects, tokens, serviceAccount, inlineDrivers, signers }: PodReferences,
  pod: { readonly namespace: string },
  cache: KubeletCache,
  nodeName: string,
): PodDependencies {
  const found = objects.map((reference) => resolveReference(reference, cache))
  const volumes = found.flatMap((claim) =>
    claim.gvr === resources.volumeClaims ? volumeOf(claim, cache) : [],
  )
  const bound = volumes.map((volume) => leadsTo(volume, pod, cache, nodeName))
  const drivers = new Set([...inlineDrivers, ...bound.flatMap(({ driver }) => driver ?? [])])
  const wanted = [...drivers].flatMap((driver) => tokensFor(driver, cache))
  return {
    objects: [...found, ...volumes, ...bound.flatMap(({ needed }) => needed)],
    tokens: [
      ...tokens,
      ...wanted.map((spec) => ({ namespace: pod.namespace, serviceAccount, ...spec })),
    ],
    signers,
  }
}

/** The collection that a kubelet lists and watches for one object. */
const queryFor = ({ gvr, namespace, name }: ObjectReference): CollectionQuery => ({
  gvr,
  ...(namespace !== '' && { namespace }),
  fieldSelector: `metadata.name=${name}`,
})

/** Looks a referenced object up as the kubelet would request it. */
export function resolveReference(
  reference: ObjectReference,
  cache: KubeletCache,
): ResolvedReference {
  try {
    return resolve(reference, cache)
  } catch (cause) {
    if (!(cause instanceof StoreFailure)) throw cause
    return { ...reference, found: undefined, damaged: true }
  }
}

function resolve(reference: ObjectReference, cache: KubeletCache): ResolvedReference {
  const { gvr, namespace, name, by } = reference
  if (name === '') {
    const all = cache.collection({ gvr })
    if (!all) return { ...reference, found: undefined }
    return { ...reference, found: 'absent', confirmedAt: all.confirmedAt }
  }
  if (by !== 'list') {
    const found = cache.object(gvr, namespace, name)
    return (found === undefined && olderClaim(reference, cache)) || withFound(reference, found)
  }
  const list = cache.collection(queryFor(reference))
  if (!list) return { ...reference, found: undefined }
  const { encoding, gvk, confirmedAt } = list
  const object = [...list.objects].find((each) => each.name === name)
  const found = object ? { encoding, gvk, object, confirmedAt } : 'absent'
  return { ...reference, found, confirmedAt }
}

const withFound = (
  reference: ObjectReference,
  found: ResolvedReference['found'],
): ResolvedReference => ({
  ...reference,
  found,
  ...(typeof found === 'object' && { confirmedAt: found.confirmedAt }),
})

/**
 * Kubelets before 1.34 read resource claims in older versions. The version that a kubelet has read
 * before is the one it reads again.
 */
function olderClaim(
  reference: ObjectReference,
  cache: KubeletCache,
): ResolvedReference | undefined {
  if (reference.gvr !== resources.resourceClaims) return undefined
  for (const version of resources.olderResourceClaimVersions) {
    const gvr = { ...reference.gvr, version }
    const found = cache.object(gvr, reference.namespace, reference.name)
    if (found !== undefined) return withFound({ ...reference, gvr }, found)
  }
  return undefined
}

function volumeOf({ found }: ResolvedReference, cache: KubeletCache): ResolvedReference[] {
  const name = read(found, (claim) => stringAt(claim, ['spec', 'volumeName']))
  if (!name) return []
  return [resolveReference(requiredObject(resources.persistentVolumes, '', name), cache)]
}

/** Secrets that a kubelet reads itself; those for attaching are read by the controller. */
const secretsOfVolumes: readonly { readonly name: Path; readonly namespace: Path }[] = [
  ...[
    ...['nodeStageSecretRef', 'nodePublishSecretRef'].map((secret) => ['csi', secret]),
    ...['flexVolume', 'cephfs', 'rbd', 'iscsi', 'cinder', 'scaleIO', 'storageos'].map((source) => [
      source,
      'secretRef',
    ]),
  ].map((path) => ({ name: [...path, 'name'], namespace: [...path, 'namespace'] })),
  { name: ['azureFile', 'secretName'], namespace: ['azureFile', 'secretNamespace'] },
]

function leadsTo(
  { found }: ResolvedReference,
  pod: { readonly namespace: string },
  cache: KubeletCache,
  nodeName: string,
): { readonly needed: ResolvedReference[]; readonly driver?: string } {
  const volume = cursorOfFound(found)
  if (!volume) return { needed: [] }
  const secrets = secretsOfVolumes.flatMap((path) => {
    const name = stringAt(volume, ['spec', ...path.name])
    if (name === '') return []
    // The pod's own where the volume names none.
    const namespace = stringAt(volume, ['spec', ...path.namespace]) || pod.namespace
    return [resolveReference(requiredObject(resources.secrets, namespace, name), cache)]
  })
  const driver = stringAt(volume, ['spec', 'csi', 'driver'])
  if (driver === '') return { needed: secrets }
  if (!isAttached(driver, cache)) return { needed: secrets, driver }
  const name = attachmentName(stringAt(volume, ['spec', 'csi', 'volumeHandle']), driver, nodeName)
  const attachment = requiredObject(resources.volumeAttachments, '', name)
  return { needed: [...secrets, resolveReference(attachment, cache)], driver }
}

/**
 * Whether volumes of a driver are attached before they are mounted: yes, unless its CSIDriver has
 * `attachRequired: false`.
 */
const isAttached = (driver: string, cache: KubeletCache): boolean =>
  read(cache.object(resources.csiDrivers, '', driver), (found) =>
    found.value(['spec', 'attachRequired']),
  ) !== false

/** The name of a VolumeAttachment (k/k pkg/volume/csi/csi_attacher.go, getAttachmentName). */
export const attachmentName = (volumeHandle: string, driver: string, nodeName: string): string =>
  `csi-${createHash('sha256').update(`${volumeHandle}${driver}${nodeName}`).digest('hex')}`

/**
 * The tokens of the pod that a driver requests (k/k pkg/volume/csi/csi_plugin.go,
 * podServiceAccountTokenAttrs).
 */
function tokensFor(
  driver: string,
  cache: KubeletCache,
): Pick<TokenReference, 'audiences' | 'expirationSeconds'>[] {
  const found = cursorOfFound(cache.object(resources.csiDrivers, '', driver))
  if (!found) return []
  const list = ['spec', 'tokenRequests']
  return Array.from({ length: found.count(list) }, (_, at) => {
    const audience = stringAt(found, [...list, at, 'audience'])
    const seconds = found.value([...list, at, 'expirationSeconds'])
    return {
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    }
  })
}

const cursorOfFound = (found: CachedObject | 'absent' | undefined): Cursor | undefined =>
  typeof found === 'object' ? cursorOf(found.encoding, found.gvk, found.object) : undefined

function read<T>(
  found: CachedObject | 'absent' | undefined,
  of: (object: Cursor) => T,
): T | undefined {
  const object = cursorOfFound(found)
  return object && of(object)
}

/** Whether its state is final: a claim is bound, a volume attached. */
export function isSettled({ gvr, found }: ResolvedReference): boolean {
  const object = cursorOfFound(found)
  if (gvr === resources.volumeClaims)
    return !object || stringAt(object, ['spec', 'volumeName']) !== ''
  if (gvr === resources.volumeAttachments) {
    return object?.value(['status', 'attached']) === true
  }
  return true
}
