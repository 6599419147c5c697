import type { Logger } from 'pino'
import { textAt } from '../../api/kube/json-at.ts'
import { sharedIdentity } from '../../api/request/identity.ts'
import { apiCall } from '../../http/client/api-call.ts'
import type { Connections } from '../../http/client/connections.ts'
import type { ObjectStore } from '../store/store.ts'
import { NotReady, ProbeRefused, type Probe } from '../upstream/probe.ts'

/** The Service that API servers make in an empty cluster: nodes may read it, and no namespace. */
const path = '/api/v1/namespaces/default/services/kubernetes'

/** The document of the store with the UID of that Service. No client's request has its key. */
const key = { identity: sharedIdentity, path: '/cluster', representation: 'uid' } as const

/** An API server of another cluster, beside those of the one that is recorded. */
class OtherCluster extends Error {
  readonly code = 'OTHER_CLUSTER'
}

type Store = Pick<ObjectStore, 'document' | 'putDocument' | 'drop'>

/**
 * The cluster whose answers the store holds. Another one may be behind the same address and CA: it
 * was built anew, or the node has joined another. Its API servers would be given the first one's
 * records for their own, and its callers the first one's Secrets.
 */
export class KnownCluster {
  readonly #connections: Connections
  readonly #log: Logger
  readonly #store = Promise.withResolvers<Store>()
  #onDropped: () => void = () => undefined
  /** The API servers that were compared since the hub came online. */
  readonly #compared = new Set<string>()

  #turn = Promise.resolve()

  constructor(connections: Connections, log: Logger) {
    this.#connections = connections
    this.#log = log
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
   * API server is recorded.
   */
  comparing(probe: Probe): Probe {
    return async (origin, withinMs) => {
      try {
        await probe(origin, withinMs)
      } catch (cause) {
        // It answers requests all the same.
        if (cause instanceof NotReady && !(cause instanceof ProbeRefused))
          await this.#compare(origin, withinMs)
        throw cause
      }
      await this.#compare(origin, withinMs)
    }
  }

  async #compare(origin: string, withinMs: number): Promise<void> {
    const store = await this.#store.promise
    if (this.#compared.has(origin)) return
    const uid = await this.#uidAt(origin, withinMs)
    if (uid === undefined) return
    // One after the other: the second would drop what came after the first.
    const turn = this.#turn.then(() => this.#take(uid, origin, store))
    this.#turn = turn.catch(() => undefined)
    await turn
  }

  async #take(uid: string, origin: string, store: Store): Promise<void> {
    const known = store.document(key)
    if (known && Buffer.from(known.body).toString() !== uid) {
      if (this.#compared.size > 0)
        throw new OtherCluster(`${origin} is of another cluster than the other API servers`)
      await store.drop()
      this.#onDropped()
      this.#log.warn(
        { upstream: origin },
        'this is another cluster than the one whose answers were recorded: all records are dropped',
      )
    }
    await store.putDocument(key, { mediaType: 'text/plain', body: Buffer.from(uid) })
    this.#compared.add(origin)
  }

  /** `undefined` where it cannot be read: the API server counts as one of the known cluster. */
  async #uidAt(origin: string, patienceMs: number): Promise<string | undefined> {
    const call = apiCall(new URL(origin), this.#connections.credentials, { patienceMs })
    try {
      const { status, body } = await call({ method: 'GET', path })
      const uid = status === 200 ? textAt(body, 'metadata', 'uid') : ''
      // The next request follows after an outage.
      if (uid === '' && status < 500) this.#compared.add(origin)
      return uid === '' ? undefined : uid
    } catch {
      return undefined
    }
  }
}
