import type { Cursor, Path } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { ValueTooLarge } from '../../api/codec/decode-limit.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { Json } from '../../api/kube/json.ts'
import { valueAt, listAt, textAt } from '../../api/kube/json-at.ts'
import * as resources from '../../api/kube/resources.ts'

/**
 * What it means for a pod that an object is not there. `required`: the pod does not start.
 * `optional`: it starts if the cloud has said that there is no such object, and not while nobody
 * knows. `if-asked`: only some kubelets ask, and those that do not need no answer.
 */
export type Need = 'required' | 'optional' | 'if-asked'

/** An object that a kubelet asks for before it starts the containers of a pod. */
export interface ObjectReference {
  readonly gvr: GVR
  /** Empty for what is cluster-scoped. */
  readonly namespace: string
  /** Empty for whatever there is of it (`listed`): what of that counts is the kubelet's to say. */
  readonly name: string
  /**
   * How the kubelet asks: `list`, a list and watch of its own for the one object, which is what it
   * does by default for what containers use; `get`, by name; `listed`, in a list of all of them,
   * which it keeps anyway.
   */
  readonly by: 'list' | 'get' | 'listed'
  readonly need: Need
}

/**
 * A token that a kubelet asks for in the name of a pod, as its TokenRequest says it (k/k
 * pkg/volume/projected/projected.go).
 */
export interface TokenReference {
  readonly namespace: string
  readonly serviceAccount: string
  /** Empty: those of the API server. */
  readonly audiences: readonly string[]
  /**
   * Absent: the API server's default, an hour. What admission adds to each pod asks for 3607, which
   * it prolongs to a year.
   */
  readonly expirationSeconds: number | undefined
}

export interface PodReferences {
  readonly serviceAccount: string
  readonly objects: readonly ObjectReference[]
  readonly tokens: readonly TokenReference[]
  /**
   * Drivers whose volumes the pod itself describes; those of claims are found in the volumes they
   * are bound to.
   */
  readonly inlineDrivers: readonly string[]
  /**
   * Who signs certificates for the pod: a kubelet keeps them in memory, and has them issued anew
   * when it starts (k/k pkg/kubelet/podcertificate).
   */
  readonly signers: readonly string[]
}

const mirror = 'kubernetes.io/config.mirror'

/** Why a pod of the node does not start again with it; `undefined` where it does. */
export function whyNotForBoot(pod: Cursor): 'mirror' | 'ended' | undefined {
  // Of a file on the node: the kubelet runs it whatever any API server says.
  if (pod.mentions(mirror) && pod.annotation(mirror) !== undefined) return 'mirror'
  const phase = pod.value(['status', 'phase'])
  const over = phase === 'Succeeded' || phase === 'Failed'
  return over || pod.value(['metadata', 'deletionTimestamp']) !== undefined ? 'ended' : undefined
}

/**
 * All that a pod refers to by name, each once. The claims' volumes, and what those lead to, are not
 * in the pod. What it says is decoded for that: by path, all that stands before a variable would be
 * gone through again for each of them. Throws a `MalformedBody`.
 */
export function referencesOf(pod: Cursor): PodReferences {
  const spec = decoded(pod, ['spec'])
  const found = new ReferenceCollector(pod, textAt(spec, 'serviceAccountName') || 'default')
  for (const list of containerLists) {
    for (const container of listAt(spec, list)) found.environment(container)
  }
  for (const volume of listAt(spec, 'volumes')) found.volume(volume)
  for (const secret of listAt(spec, 'imagePullSecrets')) {
    // A kubelet goes on without, where the image is there; since 1.35 it wants to see that the pod
    // may still use it.
    found.watched(resources.secrets, textAt(secret, 'name'), 'optional')
  }
  const made = decoded(pod, ['status', 'resourceClaimStatuses'])
  for (const claim of listAt(spec, 'resourceClaims')) found.resourceClaim(claim, made)
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

/** Larger than an API server keeps a pod, what is there counts as what nobody can read. */
function decoded(pod: Cursor, path: Path): Json | undefined {
  try {
    return pod.json(path)
  } catch (cause) {
    if (!(cause instanceof ValueTooLarge)) throw cause
    throw new MalformedBody('a pod that says too much', { cause })
  }
}

/**
 * The secret of a volume that a kubelet mounts itself: read by name, in the pod's namespace (k/k
 * pkg/volume/util, GetSecretForPod).
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

  constructor({ namespace, name }: Cursor, serviceAccount: string) {
    this.#namespace = namespace
    this.#pod = name
    this.#serviceAccount = serviceAccount
  }

  all(): PodReferences {
    this.#named(resources.serviceAccounts, this.#serviceAccount, 'if-asked')
    return {
      serviceAccount: this.#serviceAccount,
      objects: [...this.#objects.values()],
      tokens: [...this.#tokens.values()],
      inlineDrivers: [...this.#drivers],
      signers: [...this.#signers],
    }
  }

  /** Of two references to one object the stricter counts. */
  add(reference: ObjectReference): void {
    const { gvr, namespace, name, by, need } = reference
    if (name === '' && by !== 'listed') return
    const key = `${gvr.resource}/${namespace}/${name}`
    if (need === 'required' || !this.#objects.has(key)) this.#objects.set(key, reference)
  }

  watched(gvr: GVR, name: string, need: Need): void {
    this.add({ gvr, namespace: this.#namespace, name, by: 'list', need })
  }

  #named(gvr: GVR, name: string, need: Need): void {
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

  /** A secret and a config map, by the names of their fields in `of`. */
  #source(of: Json | undefined, secret: string, configMap: string, nameOfSecret = 'name'): void {
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
      this.#named(resources.secrets, textAt(volume, ...path), 'required')
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

  /** One by its name, or all of a signer: of these there may be none. */
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
    this.#named(resources.volumeClaims, name, 'required')
  }

  /**
   * Of devices: by its name, or by the one that was made for the pod from a template, which its
   * status tells in `made`.
   */
  resourceClaim(claim: Json, made: Json | undefined): void {
    const own = textAt(claim, 'name')
    const status = listAt(made).find((each) => textAt(each, 'name') === own)
    const name = textAt(claim, 'resourceClaimName') || textAt(status, 'resourceClaimName')
    this.#named(resources.resourceClaims, name, 'required')
  }
}

const needAt = (source: Json | undefined, ...path: readonly string[]): Need =>
  valueAt(source, ...path, 'optional') === true ? 'optional' : 'required'

/** '' where there is none. */
export function stringAt(cursor: Cursor, path: Path): string {
  const value = cursor.value(path)
  return typeof value === 'string' ? value : ''
}
