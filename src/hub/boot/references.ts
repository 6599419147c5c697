import { isMirrorPod, type Cursor, type Path } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { ValueTooLarge } from '../../api/codec/decode-limit.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import type { Json } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../api/kube/json-at.ts'
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
  const phase = pod.value(['status', 'phase'])
  const hasEnded = phase === 'Succeeded' || phase === 'Failed'
  return !hasEnded && pod.value(['metadata', 'deletionTimestamp']) === undefined
}

const specPath: Path = ['spec']
const claimsPath: Path = ['status', 'resourceClaimStatuses']
const extendedClaimPath: Path = ['status', 'extendedResourceClaimStatus']

/** All that the references of one pod depend on. */
export const referenceSources: readonly Path[] = [specPath, claimsPath, extendedClaimPath]

/**
 * All objects that a pod refers to by name, each once, without the claims' volumes and their
 * references. Decodes the whole spec at once: reads by path would scan all of it for each
 * variable. Throws a `MalformedBody`.
 */
export function referencesOf(pod: Cursor): PodReferences {
  const spec = decoded(pod, specPath)
  const found = new ReferenceCollector(pod, textAt(spec, 'serviceAccountName'))
  for (const list of containerLists) {
    for (const container of listAt(spec, list)) found.environment(container)
  }
  for (const volume of listAt(spec, 'volumes')) found.volume(volume)
  for (const secret of listAt(spec, 'imagePullSecrets')) {
    // A kubelet goes on without it if it has the image. Since 1.35 it verifies that the pod may
    // still use the image.
    found.watched(resources.secrets, textAt(secret, 'name'), 'optional')
  }
  const made = decoded(pod, claimsPath)
  for (const claim of listAt(spec, 'resourceClaims')) found.resourceClaim(claim, made)
  // Made by the scheduler for devices that the containers request as extended resources.
  const extended = stringAt(pod, [...extendedClaimPath, 'resourceClaimName'])
  found.named(resources.resourceClaims, extended, 'required')
  const runtimeClass = textAt(spec, 'runtimeClassName')
  if (runtimeClass !== '') {
    found.add({
      gvr: resources.runtimeClasses,
      namespace: '',
      name: runtimeClass,
      by: 'listed',
      need: 'required',
    })
  }
  return found.all()
}

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/** A value larger than an API server stores counts as malformed. */
function decoded(pod: Cursor, path: Path): Json | undefined {
  try {
    return pod.json(path)
  } catch (cause) {
    if (!(cause instanceof ValueTooLarge)) throw cause
    throw new MalformedBody('a pod that says too much', { cause })
  }
}

/**
 * The secret of a volume that a kubelet mounts itself, in the pod's namespace (k/k pkg/volume/util,
 * GetSecretForPod).
 */
const secretsOfMounts: readonly (readonly string[])[] = [
  ...['flexVolume', 'cephfs', 'rbd', 'iscsi', 'cinder', 'scaleIO', 'storageos'].map(
    (source) => [source, 'secretRef', 'name'] as const,
  ),
  ['csi', 'nodePublishSecretRef', 'name'],
  ['azureFile', 'secretName'],
]

class ReferenceCollector {
  readonly #namespace: string
  readonly #pod: string
  readonly #serviceAccount: string
  readonly #objects = new Map<string, ObjectReference>()
  readonly #tokens = new Map<string, TokenReference>()
  readonly #drivers = new Set<string>()
  readonly #signers = new Set<string>()

  /** A kubelet reads no account for a pod that names none: an empty `account`. */
  constructor({ namespace, name }: Cursor, account: string) {
    this.#namespace = namespace
    this.#pod = name
    this.#serviceAccount = account || 'default'
    this.named(resources.serviceAccounts, account, 'if-requested')
  }

  all(): PodReferences {
    return {
      serviceAccount: this.#serviceAccount,
      objects: [...this.#objects.values()],
      tokens: [...this.#tokens.values()],
      inlineDrivers: [...this.#drivers],
      signers: [...this.#signers],
    }
  }

  /** Of two references to one object the stricter one counts. */
  add(reference: ObjectReference): void {
    const { gvr, namespace, name, need } = reference
    const key = `${gvr.resource}/${namespace}/${name}`
    if (need === 'required' || !this.#objects.has(key)) this.#objects.set(key, reference)
  }

  /** Most variables and volumes name no object: an empty `name`. */
  watched(gvr: GVR, name: string, need: Need): void {
    if (name === '') return
    this.add({ gvr, namespace: this.#namespace, name, by: 'list', need })
  }

  named(gvr: GVR, name: string, need: Need): void {
    if (name === '') return
    this.add({ gvr, namespace: this.#namespace, name, by: 'get', need })
  }

  environment(container: Json): void {
    for (const from of listAt(container, 'envFrom')) {
      this.#source(from, 'secretRef', 'configMapRef')
    }
    for (const variable of listAt(container, 'env')) {
      this.#source(valueAt(variable, 'valueFrom'), 'secretKeyRef', 'configMapKeyRef')
    }
  }

  /** A secret and a config map, in the fields of `of` with these names. */
  #source(of: Json | undefined, secret: string, configMap: string, nameOfSecret = 'name'): void {
    if (of === undefined) return
    this.watched(resources.secrets, textAt(of, secret, nameOfSecret), needAt(of, secret))
    this.watched(resources.configMaps, textAt(of, configMap, 'name'), needAt(of, configMap))
  }

  volume(volume: Json): void {
    this.#source(volume, 'secret', 'configMap', 'secretName')
    for (const source of listAt(volume, 'projected', 'sources')) this.#projected(source)
    this.#claim(textAt(volume, 'persistentVolumeClaim', 'claimName'))
    const template = ['ephemeral', 'volumeClaimTemplate', 'spec', 'accessModes']
    if (listAt(volume, ...template).length > 0) {
      this.#claim(`${this.#pod}-${textAt(volume, 'name')}`)
    }
    const driver = textAt(volume, 'csi', 'driver')
    if (driver !== '') this.#drivers.add(driver)
    for (const path of secretsOfMounts) {
      this.named(resources.secrets, textAt(volume, ...path), 'required')
    }
  }

  #projected(source: Json): void {
    this.#source(source, 'secret', 'configMap')
    const signer = textAt(source, 'podCertificate', 'signerName')
    if (signer !== '') this.#signers.add(signer)
    this.#trustBundle(valueAt(source, 'clusterTrustBundle'))
    const token = valueAt(source, 'serviceAccountToken')
    if (textAt(token, 'path') === '') return
    const audience = textAt(token, 'audience')
    const seconds = valueAt(token, 'expirationSeconds')
    const reference = {
      namespace: this.#namespace,
      serviceAccount: this.#serviceAccount,
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    }
    this.#tokens.set(JSON.stringify([audience, seconds]), reference)
  }

  /** One by its name, or all of a signer, of which there may be none. */
  #trustBundle(source: Json | undefined): void {
    if (textAt(source, 'path') === '') return
    const name = textAt(source, 'name')
    this.add({
      gvr: resources.trustBundles,
      namespace: '',
      name,
      by: 'listed',
      need: name === '' ? 'optional' : needAt(source),
    })
  }

  #claim(name: string): void {
    this.named(resources.volumeClaims, name, 'required')
  }

  /**
   * A claim of devices, by its name, or by that of the claim made from a template, which the pod's
   * status has in `made`.
   */
  resourceClaim(claim: Json, made: Json | undefined): void {
    const own = textAt(claim, 'name')
    const status = listAt(made).find((each) => textAt(each, 'name') === own)
    const name = textAt(claim, 'resourceClaimName') || textAt(status, 'resourceClaimName')
    this.named(resources.resourceClaims, name, 'required')
  }
}

const needAt = (source: Json | undefined, ...path: readonly string[]): Need =>
  valueAt(source, ...path, 'optional') === true ? 'optional' : 'required'

/** '' where there is none. */
export function stringAt(cursor: Cursor, path: Path): string {
  const value = cursor.value(path)
  return typeof value === 'string' ? value : ''
}
