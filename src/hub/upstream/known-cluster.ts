import type { Logger } from 'pino'
import { builtInGroups } from '../../api/kube/gvk.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import { isNewer, type ResourceVersion } from '../../api/kube/resource-version.ts'
import { hubIdentity } from '../../api/request/identity.ts'
import { apiCall } from '../../http/client/api-call.ts'
import type { Connections } from '../../http/client/connections.ts'
import { documentAt, putDocument } from '../store/document.ts'
import type { ObjectStore } from '../store/store.ts'
import { NotReady, ProbeRefused, type Probe } from './probe.ts'

/**
 * The Service that API servers make in an empty cluster: nodes may read it, and no namespace. A
 * list without a version is consistent: it has the UID of the Service, and the newest version of
 * the cluster.
 */
const path = '/api/v1/namespaces/default/services?fieldSelector=metadata.name%3Dkubernetes'

/** Large clusters keep these in an etcd of their own, whose versions count for themselves. */
const ofOtherEtcds = new Set(['events', 'leases'])

/** Whether the resource is kept where services are: their versions compare. */
const isOfOneEtcd = (group: string, resource: string): boolean =>
  builtInGroups.has(group) && !ofOtherEtcds.has(resource)

/** The document of the store with the UID of that Service. No client's request has its key. */
const key = documentAt(hubIdentity, '/cluster', 'uid')

/** An API server of another cluster, beside those of the one that is recorded. */
class OtherCluster extends Error {
  readonly code = 'OTHER_CLUSTER'
}

type Store = Pick<ObjectStore, 'get' | 'put' | 'newestVersion' | 'drop'>

/** '': none is stored. */
const uidIn = (store: Store): string => {
  const found = store.get(key)
  return typeof found === 'object' ? String(Buffer.from(found.object.bytes)) : ''
}

/** What an API server says of its cluster. */
interface ClusterState {
  /** '': it has no such Service. */
  readonly uid: string
  readonly version: string
}

/**
 * The cluster whose answers the store holds. Another one may be behind the same address and CA: it
 * was built anew, or the node has joined another. Its API servers would be given the first one's
 * records for their own, and its callers the first one's Secrets. So is one that was restored from
 * a backup: its versions are behind those that the store has, and mean other states.
 */
export class KnownCluster {
  readonly #connections: Connections
  readonly #log: Logger
  readonly #store = Promise.withResolvers<Store>()
  #onDropped: () => void = () => undefined
  #isPresent: (origin: string) => boolean = () => true
  /** The API servers that were compared since the hub came online. */
  readonly #compared = new Set<string>()
  /** The UID of the recorded cluster, whether or not the disk takes it; '': not known yet. */
  #uid = ''

  readonly #answered = Promise.withResolvers<void>()

  #turn = Promise.resolve()

  constructor(connections: Connections, log: Logger) {
    this.#connections = connections
    this.#log = log
  }

  /** Resolves when an API server has answered, also while there is no store yet. */
  get answered(): Promise<void> {
    return this.#answered.promise
  }

  /** Probes wait for that. `onDropped` is called when the store was emptied. */
  keepIn(store: Store, onDropped: () => void): void {
    this.#onDropped = onDropped
    this.#store.resolve(store)
  }

  /** To be called when the hub goes offline: what answers next may be another cluster. */
  offline(): void {
    this.#compared.clear()
  }

  /**
   * A probe that compares the cluster as well, before the hub is online: until then no answer of an
   * API server is recorded. `isPresent`: whether the hub still has the API server of that origin; a
   * last probe of one that was removed may end late.
   */
  comparing(probe: Probe, isPresent: (origin: string) => boolean): Probe {
    this.#isPresent = isPresent
    return async (origin, withinMs) => {
      try {
        await probe(origin, withinMs)
      } catch (cause) {
        // What answers next may be another one.
        this.#compared.delete(origin)
        // One that is not ready answers requests all the same.
        if (cause instanceof NotReady && !(cause instanceof ProbeRefused))
          await this.#compare(origin, withinMs)
        throw cause
      }
      await this.#compare(origin, withinMs)
    }
  }

  async #compare(origin: string, withinMs: number): Promise<void> {
    this.#answered.resolve()
    const store = await this.#store.promise
    if (this.#compared.has(origin)) return this.#keepUid(store)
    // What comes while the API server answers may be newer than its answer.
    const newest = store.newestVersion(isOfOneEtcd)
    const state = await this.#stateAt(origin, withinMs)
    if (state === undefined) return
    // One after the other: the second would drop what came after the first.
    const turn = this.#turn.then(() => this.#take(state, origin, store, newest))
    this.#turn = turn.catch(() => undefined)
    await turn
  }

  /** `newest`: the newest version that was stored before the request. */
  async #take(
    { uid, version }: ClusterState,
    origin: string,
    store: Store,
    newest: ResourceVersion | undefined,
  ): Promise<void> {
    const known = this.#uid || uidIn(store)
    const isOther = uid !== '' && known !== '' && known !== uid
    if (isOther && [...this.#compared].some(this.#isPresent))
      throw new OtherCluster(`${origin} is of another cluster than the other API servers`)
    // Once all was dropped for that, what came since is of the restored one.
    const isRestored =
      isNewer(newest, version) && isNewer(store.newestVersion(isOfOneEtcd), version)
    if (isOther || isRestored) {
      // Where the disk takes no writes, it is gone from memory; the store reports that.
      await store.drop().catch(() => undefined)
      this.#onDropped()
      const upstream = { upstream: origin }
      if (isOther)
        this.#log.warn(
          upstream,
          'this is another cluster than the one whose answers were recorded: all records are dropped',
        )
      else
        this.#log.warn(
          upstream,
          'the cluster was restored from a backup since its answers were recorded: all records are dropped',
        )
    }
    if (uid !== '') this.#uid = uid
    this.#keepUid(store)
    this.#compared.add(origin)
  }

  /** Tried again at each probe: a disk that takes no writes keeps no API server out. */
  #keepUid(store: Store): void {
    if (this.#uid === '' || uidIn(store) === this.#uid) return
    // The store reports its failures.
    putDocument(store, key, 'text/plain', Buffer.from(this.#uid)).catch(() => undefined)
  }

  /** `undefined` where it cannot be read: the API server counts as one of the known cluster. */
  async #stateAt(origin: string, patienceMs: number): Promise<ClusterState | undefined> {
    const call = apiCall(new URL(origin), this.#connections.credentials, { patienceMs })
    try {
      const { status, body } = await call({ method: 'GET', path })
      // It will not say: the next request follows after an outage, else with the next probe.
      if (status === 403 || status === 404) this.#compared.add(origin)
      if (status !== 200) return undefined
      const [found] = listAt(body, 'items')
      return {
        uid: found ? textAt(found, 'metadata', 'uid') : '',
        version: textAt(body, 'metadata', 'resourceVersion'),
      }
    } catch {
      return undefined
    }
  }
}
