import type { Cursor, Path } from '../codec/cursor.ts'
import type { GVR } from '../kube/gvk.ts'
import * as resources from './resources.ts'

/**
 * What it means for a pod that an object is not there. `required`: the pod does not start. `optional`: it starts if the cloud has said
 * that there is no such object, and not while nobody knows. `if-asked`: only some kubelets ask, and those that do not need no answer.
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
   * How the kubelet asks: `list`, a list and watch of its own for the one object, which is what it does by default for what containers
   * use; `get`, by name; `listed`, in a list of all of them, which it keeps anyway.
   */
  readonly by: 'list' | 'get' | 'listed'
  readonly need: Need
}

/** A token that a kubelet asks for in the name of a pod, as its TokenRequest says it (k/k pkg/volume/projected/projected.go). */
export interface TokenReference {
  readonly namespace: string
  readonly serviceAccount: string
  /** Empty: those of the API server. */
  readonly audiences: readonly string[]
  /** Absent: the API server's default, an hour. What admission adds to each pod asks for 3607, which it prolongs to a year. */
  readonly expirationSeconds: number | undefined
}

export interface PodReferences {
  readonly serviceAccount: string
  readonly objects: readonly ObjectReference[]
  readonly tokens: readonly TokenReference[]
  /** Drivers whose volumes the pod itself describes; those of claims are found in the volumes they are bound to. */
  readonly inlineDrivers: readonly string[]
  /** Who signs certificates for the pod: a kubelet keeps them in memory, and has them issued anew when it starts (k/k pkg/kubelet/podcertificate). */
  readonly signers: readonly string[]
}

/** Why a pod of the node does not start again with it; `undefined` where it does. */
export function whyNotForBoot(pod: Cursor): 'mirror' | 'ended' | undefined {
  // Of a file on the node: the kubelet runs it whatever any API server says.
  if (pod.annotation('kubernetes.io/config.mirror') !== undefined) return 'mirror'
  const phase = pod.value(['status', 'phase'])
  const over = phase === 'Succeeded' || phase === 'Failed'
  return over || pod.value(['metadata', 'deletionTimestamp']) !== undefined ? 'ended' : undefined
}

/** All that a pod refers to by name, each once. The claims' volumes, and what those lead to, are not in the pod. */
export function referencesOf(pod: Cursor): PodReferences {
  const found = new Found(pod)
  for (const container of containers(pod)) found.environment(container)
  for (const volume of elements(pod, ['spec', 'volumes'])) found.volume(volume)
  for (const secret of elements(pod, ['spec', 'imagePullSecrets'])) {
    // A kubelet goes on without, where the image is there; since 1.35 it wants to see that the pod may still use it.
    found.watched(resources.secrets, [...secret, 'name'], 'optional')
  }
  for (const claim of elements(pod, ['spec', 'resourceClaims'])) found.resourceClaim(claim)
  const runtimeClass = text(pod, ['spec', 'runtimeClassName'])
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

const containers = (pod: Cursor): Path[] =>
  containerLists.flatMap((list) => elements(pod, ['spec', list]))

/** The secret of a volume that a kubelet mounts itself: read by name, in the pod's namespace (k/k pkg/volume/util, GetSecretForPod). */
const secretsOfMounts: readonly Path[] = [
  ...['flexVolume', 'cephfs', 'rbd', 'iscsi', 'cinder', 'scaleIO', 'storageos'].map(
    (source) => [source, 'secretRef', 'name'] as const,
  ),
  ['csi', 'nodePublishSecretRef', 'name'],
  ['azureFile', 'secretName'],
]

class Found {
  readonly #pod: Cursor
  readonly #serviceAccount: string
  readonly #objects = new Map<string, ObjectReference>()
  readonly #tokens = new Map<string, TokenReference>()
  readonly #drivers = new Set<string>()
  readonly #signers = new Set<string>()

  constructor(pod: Cursor) {
    this.#pod = pod
    this.#serviceAccount = text(pod, ['spec', 'serviceAccountName']) || 'default'
  }

  all(): PodReferences {
    this.add({
      gvr: resources.serviceAccounts,
      namespace: this.#pod.namespace,
      name: this.#serviceAccount,
      by: 'get',
      need: 'if-asked',
    })
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

  watched(gvr: GVR, name: Path, need: Need): void {
    const { namespace } = this.#pod
    this.add({ gvr, namespace, name: text(this.#pod, name), by: 'list', need })
  }

  environment(container: Path): void {
    const pod = this.#pod
    const needAt = (source: Path): Need => this.#needAt(source)
    for (const from of elements(pod, [...container, 'envFrom'])) {
      const secret = [...from, 'secretRef']
      const configMap = [...from, 'configMapRef']
      this.watched(resources.secrets, [...secret, 'name'], needAt(secret))
      this.watched(resources.configMaps, [...configMap, 'name'], needAt(configMap))
    }
    for (const variable of elements(pod, [...container, 'env'])) {
      const secret = [...variable, 'valueFrom', 'secretKeyRef']
      const configMap = [...variable, 'valueFrom', 'configMapKeyRef']
      this.watched(resources.secrets, [...secret, 'name'], needAt(secret))
      this.watched(resources.configMaps, [...configMap, 'name'], needAt(configMap))
    }
  }

  volume(volume: Path): void {
    const pod = this.#pod
    const secret = [...volume, 'secret']
    const configMap = [...volume, 'configMap']
    this.watched(resources.secrets, [...secret, 'secretName'], this.#needAt(secret))
    this.watched(resources.configMaps, [...configMap, 'name'], this.#needAt(configMap))
    for (const source of elements(pod, [...volume, 'projected', 'sources'])) this.#projected(source)
    this.#claim(text(pod, [...volume, 'persistentVolumeClaim', 'claimName']))
    if (pod.count([...volume, 'ephemeral', 'volumeClaimTemplate', 'spec', 'accessModes']) > 0) {
      this.#claim(`${pod.name}-${text(pod, [...volume, 'name'])}`)
    }
    const driver = text(pod, [...volume, 'csi', 'driver'])
    if (driver !== '') this.#drivers.add(driver)
    for (const path of secretsOfMounts) {
      const name = text(pod, [...volume, ...path])
      const { namespace } = pod
      this.add({ gvr: resources.secrets, namespace, name, by: 'get', need: 'required' })
    }
  }

  #projected(source: Path): void {
    const pod = this.#pod
    const secret = [...source, 'secret']
    const configMap = [...source, 'configMap']
    this.watched(resources.secrets, [...secret, 'name'], this.#needAt(secret))
    this.watched(resources.configMaps, [...configMap, 'name'], this.#needAt(configMap))
    const signer = text(pod, [...source, 'podCertificate', 'signerName'])
    if (signer !== '') this.#signers.add(signer)
    this.#trustBundle([...source, 'clusterTrustBundle'])
    const token = [...source, 'serviceAccountToken']
    if (text(pod, [...token, 'path']) === '') return
    const audience = text(pod, [...token, 'audience'])
    const seconds = pod.value([...token, 'expirationSeconds'])
    const reference = {
      namespace: pod.namespace,
      serviceAccount: this.#serviceAccount,
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    }
    this.#tokens.set(JSON.stringify([audience, seconds]), reference)
  }

  /** One by its name, or all of a signer: of these there may be none. */
  #trustBundle(source: Path): void {
    if (text(this.#pod, [...source, 'path']) === '') return
    const name = text(this.#pod, [...source, 'name'])
    this.add({
      gvr: resources.trustBundles,
      namespace: '',
      name,
      by: 'listed',
      need: name === '' ? 'optional' : this.#needAt(source),
    })
  }

  #claim(name: string): void {
    this.add({
      gvr: resources.claims,
      namespace: this.#pod.namespace,
      name,
      by: 'get',
      need: 'required',
    })
  }

  /** Of devices: by its name, or by the one that was made for the pod from a template, which its status tells. */
  resourceClaim(claim: Path): void {
    const pod = this.#pod
    const own = text(pod, [...claim, 'name'])
    const made = elements(pod, ['status', 'resourceClaimStatuses']).find(
      (status) => text(pod, [...status, 'name']) === own,
    )
    this.add({
      gvr: resources.resourceClaims,
      namespace: pod.namespace,
      name:
        text(pod, [...claim, 'resourceClaimName']) ||
        (made === undefined ? '' : text(pod, [...made, 'resourceClaimName'])),
      by: 'get',
      need: 'required',
    })
  }

  #needAt(source: Path): Need {
    return this.#pod.value([...source, 'optional']) === true ? 'optional' : 'required'
  }
}

/** The paths of the elements of a list. */
const elements = (cursor: Cursor, list: Path): Path[] =>
  Array.from({ length: cursor.count(list) }, (_, at) => [...list, at])

/** '' where there is none. */
export function text(cursor: Cursor, path: Path): string {
  const value = cursor.value(path)
  return typeof value === 'string' ? value : ''
}
