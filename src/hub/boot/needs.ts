import { createHash } from 'node:crypto'
import { TimeSlices } from '../../base/time-slices.ts'
import { cursorOf, type Cursor, type Path } from '../../api/codec/cursor.ts'
import { MalformedBody } from '../../api/codec/malformed-body.ts'
import { tokenIn } from '../../api/codec/token-request.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import * as resources from '../../api/kube/resources.ts'
import { selectorOfName } from '../../api/kube/selectors.ts'
import { claimsOf, claimTimeMs } from '../../api/kube/web-token.ts'
import { StoreFailure } from '../store/store.ts'
import { tokenName, tokenResource } from '../store/token-name.ts'
import {
  podsOf,
  type CachedCollection,
  type CachedObject,
  type KubeletCache,
} from './kubelet-cache.ts'
import {
  keyOf,
  referencesOf,
  referenceSources,
  requiredObject,
  startsAtBoot,
  stringAt,
  type ObjectReference,
  type PodReferences,
  type TokenReference,
} from './references.ts'

/** An object that a pod refers to, or that such an object leads to. */
export interface NeededObject extends ObjectReference {
  /**
   * `final`: it is stored; `pending`: it is, and the kubelet waits for a later state (a claim is
   * not bound, a volume not attached); `absent`: an API server has answered that it does not exist;
   * `damaged`: it is stored and cannot be read. `undefined`: not known.
   */
  readonly state: 'final' | 'pending' | 'absent' | 'damaged' | undefined
  /** When an API server last confirmed that; 0: not known. */
  readonly confirmedAt: number
}

export interface NeededToken extends TokenReference {
  /** When the stored token expires, in milliseconds since the epoch; absent: none is stored. */
  readonly expiresAt?: number
}

/** What a pod needs from the API server before its containers start. */
export interface PodNeeds {
  readonly namespace: string
  readonly name: string
  /** The pod cannot be understood. */
  readonly malformed?: true
  readonly objects: readonly NeededObject[]
  readonly tokens: readonly NeededToken[]
  /** See `PodReferences`. */
  readonly signers: readonly string[]
}

/** What this node needs. */
export interface NodeNeeds {
  /** What a kubelet reads before any pod. */
  readonly node: readonly NeededObject[]
  /**
   * Of each pod that starts again with the node. `undefined`: they were never listed; 'damaged':
   * the list cannot be read.
   */
  readonly pods: readonly PodNeeds[] | 'damaged' | undefined
  /** The objects of the node and its pods, each once. */
  readonly objects: readonly NeededObject[]
}

/** A stored pod. */
interface KnownPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: string
  readonly startsAtBoot: boolean
  readonly isRunning: boolean
  /** Identifies what `references` were made of. */
  readonly source: string
  readonly references: PodReferences | MalformedBody
}

/** By their uids. 'damaged': their list cannot be read; `undefined`: it never came. */
type KnownPods = Map<string, KnownPod> | 'damaged' | undefined

/**
 * The stored pods of this node, each with what it refers to. Only pods that have changed are read
 * again, and only those whose references may have changed are parsed: nearly every change is one of
 * a pod's status.
 */
export class NodePods {
  readonly #nodeName: string
  #pods: KnownPods = undefined
  #changes = 0
  /** One look at a time: an older one would bring back what a newer one has replaced. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(nodeName: string) {
    this.#nodeName = nodeName
  }

  /**
   * Takes in what has changed in the store, in slices of time; of pods that run with `all` alone:
   * what they refer to was read before they began. Resolves to a number that differs where another
   * pod starts with the node, or one refers to something else.
   */
  update(cache: KubeletCache, all = false): Promise<number> {
    const done = this.#turn.then(() => this.#update(cache, all))
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #update(cache: KubeletCache, all: boolean): Promise<number> {
    const before = this.#pods
    this.#pods = await this.#read(cache, before instanceof Map ? before : new Map(), all)
    if (this.#pods !== before) this.#changes += 1
    return this.#changes
  }

  async #read(cache: KubeletCache, known: Map<string, KnownPod>, all: boolean): Promise<KnownPods> {
    const slices = new TimeSlices()
    const query = podsOf(this.#nodeName)
    let kept = 0
    const changed = cache.collection(query, ({ uid, version }) => {
      const pod = known.get(uid)
      if (pod) kept += 1
      return pod?.version !== version && (all || !pod?.isRunning)
    })
    if (!changed) return undefined
    // Some are gone.
    if (kept < known.size) {
      const listed = new Set<string>()
      cache.collection(query, ({ uid }) => !listed.add(uid))
      for (const uid of known.keys()) if (!listed.has(uid)) known.delete(uid)
      this.#changes += 1
    }
    try {
      for (const object of changed.objects) {
        const before = known.get(object.uid)
        const pod = parsed(object, changed, before)
        known.set(pod.uid, pod)
        const { references, startsAtBoot } = pod
        if (references !== before?.references || startsAtBoot !== before.startsAtBoot)
          this.#changes += 1
        await slices.pause()
      }
    } catch (cause) {
      if (!(cause instanceof StoreFailure)) throw cause
      return 'damaged'
    }
    return known
  }

  /** What the node needs, in slices of time, each pod by the store's content at that moment. */
  async needs(cache: KubeletCache): Promise<NodeNeeds> {
    await this.update(cache, true)
    const found = new Findings(cache, this.#nodeName)
    const node = referencesOfNode(this.#nodeName).map((each) => found.needed(each))
    const known = this.#pods
    if (!(known instanceof Map)) return { node, pods: known, objects: found.objects }
    const pods: PodNeeds[] = []
    const slices = new TimeSlices()
    for (const pod of known.values()) {
      if (!pod.startsAtBoot) continue
      pods.push(found.needsOf(pod))
      await slices.pause()
    }
    return { node, pods, objects: found.objects }
  }
}

/** A kubelet watches all but its CSINode. */
const referencesOfNode = (nodeName: string): readonly ObjectReference[] => [
  { gvr: resources.nodes, namespace: '', name: nodeName, by: 'list', need: 'if-requested' },
  ...[resources.services, resources.csiDrivers, resources.runtimeClasses].map(
    (gvr) => ({ gvr, namespace: '', name: '', by: 'listed', need: 'if-requested' }) as const,
  ),
  requiredObject(resources.csiNodes, '', nodeName),
]

function parsed(
  object: ApiObject,
  { encoding, gvk }: Pick<CachedCollection, 'encoding' | 'gvk'>,
  known: KnownPod | undefined,
): KnownPod {
  const { namespace, name, uid, resourceVersion: version } = object
  const named = { namespace, name, uid, version }
  let [starts, isRunning, source] = [true, false, '']
  try {
    const pod = cursorOf(encoding, gvk, object)
    starts = startsAtBoot(pod)
    isRunning = pod.value(['status', 'phase']) === 'Running'
    source = `${uid} ${referenceSources.map((path) => pod.digest(path)).join()}`
    const references = known?.source === source ? known.references : referencesOf(pod)
    return { ...named, startsAtBoot: starts, isRunning, source, references }
  } catch (cause) {
    if (!(cause instanceof MalformedBody)) throw cause
    return { ...named, startsAtBoot: starts, isRunning, source, references: cause }
  }
}

/** What is found of an object. */
interface Finding {
  readonly needed: NeededObject
  /** What a kubelet reads next because of it. */
  readonly leadsTo: readonly ObjectReference[]
  /** The driver of a volume. */
  readonly driver?: string
}

/** What of a driver's CSIDriver counts for the pods that use it. */
interface Driver {
  /** Its volumes are attached before they are mounted. */
  readonly attaches: boolean
  readonly tokens: readonly Pick<TokenReference, 'audiences' | 'expirationSeconds'>[]
}

/** Looks objects up as the kubelet would request them, those of several pods once. */
class Findings {
  readonly #cache: KubeletCache
  readonly #nodeName: string
  /** By the namespace of the pod, too: a volume's secrets may be there. */
  readonly #found = new Map<string, Finding>()
  readonly #drivers = new Map<string, Driver>()

  constructor(cache: KubeletCache, nodeName: string) {
    this.#cache = cache
    this.#nodeName = nodeName
  }

  get objects(): readonly NeededObject[] {
    return [...this.#found.values()].map(({ needed }) => needed)
  }

  needed(reference: ObjectReference): NeededObject {
    return this.#found.getOrInsertComputed(keyOf(reference), () => this.#find(reference, '')).needed
  }

  needsOf(pod: KnownPod): PodNeeds {
    const { namespace, name, references: all } = pod
    const nothing = { namespace, name, objects: [], tokens: [], signers: [] }
    if (all instanceof MalformedBody) return { ...nothing, malformed: true }
    const { objects, tokens, serviceAccount, inlineDrivers, signers } = all
    const found = objects.flatMap((each) => this.#withAllBehind(each, namespace))
    const drivers = new Set([...inlineDrivers, ...found.flatMap(({ driver }) => driver ?? [])])
    const ofDrivers = [...drivers].flatMap((driver) => this.#driver(driver).tokens)
    const wanted = ofDrivers.map((spec) => ({ namespace, serviceAccount, ...spec }))
    return {
      namespace,
      name,
      objects: found.map(({ needed }) => needed),
      tokens: [...tokens, ...wanted].map((token) => this.#token(token, pod)),
      signers,
    }
  }

  /** An object, and all that it leads to. */
  #withAllBehind(reference: ObjectReference, namespace: string): readonly Finding[] {
    const key = `${namespace} ${keyOf(reference)}`
    const found = this.#found.getOrInsertComputed(key, () => this.#find(reference, namespace))
    const own = { ...found, needed: { ...found.needed, need: reference.need } }
    return [own, ...found.leadsTo.flatMap((each) => this.#withAllBehind(each, namespace))]
  }

  #find(reference: ObjectReference, namespace: string): Finding {
    const found = readable((): Finding => {
      const { object, ...found } = lookUp(reference, this.#cache)
      const needed = { ...reference, ...found }
      if (!object) return { needed, leadsTo: [] }
      const { isPending = false, ...rest } = this.#read(found.gvr, cursor(object), namespace)
      return { needed: { ...needed, ...(isPending && { state: 'pending' }) }, ...rest }
    })
    return found ?? { needed: { ...reference, state: 'damaged', confirmedAt: 0 }, leadsTo: [] }
  }

  #read(
    gvr: GVR,
    object: Cursor,
    namespace: string,
  ): Omit<Finding, 'needed'> & { readonly isPending?: boolean } {
    if (gvr === resources.volumeClaims) {
      const name = stringAt(object, ['spec', 'volumeName'])
      if (name === '') return { leadsTo: [], isPending: true }
      return { leadsTo: [requiredObject(resources.persistentVolumes, '', name)] }
    }
    if (gvr === resources.volumeAttachments)
      return { leadsTo: [], isPending: object.value(['status', 'attached']) !== true }
    return gvr === resources.persistentVolumes ? this.#volume(object, namespace) : { leadsTo: [] }
  }

  #volume(volume: Cursor, namespace: string): Omit<Finding, 'needed'> {
    const secrets = secretsOfVolumes.flatMap((path) => {
      const name = stringAt(volume, ['spec', ...path.name])
      // The pod's own where the volume names none.
      const of = stringAt(volume, ['spec', ...path.namespace]) || namespace
      return name === '' ? [] : [requiredObject(resources.secrets, of, name)]
    })
    const driver = stringAt(volume, ['spec', 'csi', 'driver'])
    if (driver === '') return { leadsTo: secrets }
    if (!this.#driver(driver).attaches) return { leadsTo: secrets, driver }
    const handle = stringAt(volume, ['spec', 'csi', 'volumeHandle'])
    const name = attachmentName(handle, driver, this.#nodeName)
    return { leadsTo: [...secrets, requiredObject(resources.volumeAttachments, '', name)], driver }
  }

  #driver(name: string): Driver {
    return this.#drivers.getOrInsertComputed(name, () => driverIn(this.#cache, name))
  }

  #token(token: TokenReference, { name, uid }: KnownPod): NeededToken {
    const { serviceAccount, audiences, expirationSeconds } = token
    const boundObject = { kind: 'Pod', name, uid }
    const kept = tokenName({ serviceAccount, audiences, expirationSeconds, boundObject })
    const found = this.#cache.object(tokenResource, token.namespace, kept)
    const text = typeof found === 'object' ? readable(() => tokenIn(found)) : undefined
    if (text === undefined) return token
    return { ...token, expiresAt: claimTimeMs(claimsOf(text)?.claims['exp']) ?? 0 }
  }
}

interface Found extends Pick<NeededObject, 'gvr' | 'state' | 'confirmedAt'> {
  readonly object?: CachedObject
}

/** The `gvr` is in the version in which the kubelet has read it. */
function lookUp({ gvr, namespace, name, by }: ObjectReference, cache: KubeletCache): Found {
  const unknown = { gvr, state: undefined, confirmedAt: 0 }
  if (by !== 'list' && name !== '') {
    for (const each of versionsOf(gvr)) {
      const found = cache.object(each, namespace, name)
      if (found === 'absent') return { ...unknown, state: found }
      const { confirmedAt } = found ?? unknown
      if (found) return { gvr: each, object: found, state: 'final', confirmedAt }
    }
    return unknown
  }
  const fieldSelector =
    name !== '' ? selectorOfName(name) : gvr === resources.services ? withAddress : ''
  const list = cache.collection({ gvr, ...(namespace !== '' && { namespace }), fieldSelector })
  if (!list) return unknown
  const { encoding, gvk, confirmedAt } = list
  if (name === '') return { gvr, state: 'final', confirmedAt }
  const object = [...list.objects].find((each) => each.name === name)
  if (!object) return { gvr, state: 'absent', confirmedAt }
  return { gvr, object: { encoding, gvk, object, confirmedAt }, state: 'final', confirmedAt }
}

/** The services that a kubelet lists; before 1.31 all. */
const withAddress = 'spec.clusterIP!=None'

/**
 * Kubelets before 1.34 read resource claims in older versions. The version that a kubelet has read
 * before is the one it reads again.
 */
const versionsOf = (gvr: GVR): readonly GVR[] =>
  gvr === resources.resourceClaims
    ? [gvr, ...resources.olderResourceClaimVersions.map((version) => ({ ...gvr, version }))]
    : [gvr]

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

/** The name of a VolumeAttachment (k/k pkg/volume/csi/csi_attacher.go, getAttachmentName). */
export const attachmentName = (volumeHandle: string, driver: string, nodeName: string): string =>
  `csi-${createHash('sha256').update(`${volumeHandle}${driver}${nodeName}`).digest('hex')}`

/**
 * Without a CSIDriver a driver's volumes are attached, and it gets no tokens (k/k
 * pkg/volume/csi/csi_plugin.go, podServiceAccountTokenAttrs).
 */
function driverIn(cache: KubeletCache, name: string): Driver {
  const found = cache.object(resources.csiDrivers, '', name)
  const driver = typeof found === 'object' ? readable(() => driverOf(cursor(found))) : undefined
  return driver ?? { attaches: true, tokens: [] }
}

function driverOf(found: Cursor): Driver {
  const list = ['spec', 'tokenRequests']
  const tokens = Array.from({ length: found.count(list) }, (_, at) => {
    const audience = stringAt(found, [...list, at, 'audience'])
    const seconds = found.value([...list, at, 'expirationSeconds'])
    return {
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    }
  })
  return { attaches: found.value(['spec', 'attachRequired']) !== false, tokens }
}

const cursor = ({ encoding, gvk, object }: CachedObject): Cursor => cursorOf(encoding, gvk, object)

/** `undefined` where it cannot be read, or not be understood. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof StoreFailure || cause instanceof MalformedBody) return undefined
    throw cause
  }
}
