import type { Json, JsonObject } from '../../../src/api/kube/json.ts'
import { at, type Client } from '../client.ts'
import { ask } from './requests.ts'
import { initialiseCsiNode, registerDriver } from './csi-node.ts'
import { Informer, type Synced } from './informer.ts'
import { holdLease } from './lease.ts'
import { register, reportStatus } from './node.ts'
import { startPod, type StartedPod } from './pods.ts'
import { servicesQuery, type Release } from './release.ts'

/** What a kubelet accepts. */
export const kubeletAccepts = 'application/vnd.kubernetes.protobuf,application/json'

export interface KubeletDoubleOptions {
  /** Speaks protobuf, and accepts `kubeletAccepts`. */
  readonly client: Client
  readonly nodeName: string
  readonly release: Release
  /** CSI drivers that run on the node. */
  readonly drivers: readonly string[]
  readonly volumesInUse: readonly string[]
  /** Of every pod; as a rule another after a reboot. */
  readonly podIp: string
}

/** What a kubelet has got when all its pods run. */
export interface StartedKubelet {
  readonly nodeLabels: Json
  readonly services: readonly string[]
  readonly csiDrivers: readonly string[]
  readonly runtimeClasses: readonly string[]
  readonly csiDriversOfNode: readonly string[]
  readonly leaseHolder: Json
  readonly volumesInUse: Json
  readonly pods: Readonly<Record<string, StartedPod>>
}

/**
 * A kubelet's requests, in the order in which it makes them when it starts, until all its pods run;
 * each is made once, where a kubelet would try again and again. Throws `Stuck` at the first that it
 * could not go on with.
 */
export class KubeletDouble implements Disposable {
  readonly #surroundings: KubeletDoubleOptions
  readonly #held = new DisposableStack()

  constructor(surroundings: KubeletDoubleOptions) {
    this.#surroundings = surroundings
  }

  async start(): Promise<StartedKubelet> {
    const { client, nodeName, release, drivers, volumesInUse, podIp } = this.#surroundings
    const node = (
      await this.#sync('/api/v1/nodes', { fieldSelector: `metadata.name=${nodeName}` })
    ).get(nodeName)
    const services = await this.#sync('/api/v1/services', servicesQuery(release))
    const csiDrivers = await this.#sync('/apis/storage.k8s.io/v1/csidrivers')
    const runtimeClasses = await this.#sync('/apis/node.k8s.io/v1/runtimeclasses')
    let csiNode = await initialiseCsiNode(client, release, nodeName)
    const registered = await register(client, nodeName)
    const pods = await this.#sync('/api/v1/pods', { fieldSelector: `spec.nodeName=${nodeName}` })
    const lease = await holdLease(client, nodeName)
    for (const driver of drivers) csiNode = await registerDriver(client, nodeName, driver)
    const said = await reportStatus(client, release, node ?? registered, volumesInUse)
    const started: Record<string, StartedPod> = {}
    for (const [name, pod] of pods) {
      const keep = <T extends Disposable>(watch: T): T => this.#held.use(watch)
      started[name] = await startPod({ client, release, nodeName, pod, podIp, keep })
      await this.#record(pod)
    }
    return {
      nodeLabels: at(registered, 'metadata', 'labels') ?? null,
      services: [...services.keys()],
      csiDrivers: [...csiDrivers.keys()],
      runtimeClasses: [...runtimeClasses.keys()],
      csiDriversOfNode: namesAt(csiNode, 'spec', 'drivers'),
      leaseHolder: at(lease, 'spec', 'holderIdentity') ?? null,
      volumesInUse: at(said, 'status', 'volumesInUse') ?? null,
      pods: started,
    }
  }

  #sync(path: string, query: Record<string, string> = {}): Promise<Synced> {
    const { client, release } = this.#surroundings
    return this.#held.use(new Informer(client, path, query)).sync(release)
  }

  /** An event: one that is refused is gone, one that is not answered holds up all others. */
  async #record(pod: JsonObject): Promise<void> {
    const { client, nodeName } = this.#surroundings
    const { name, uid, namespace } = pod['metadata'] as Record<string, string>
    const now = new Date().toISOString().replace(/\.\d+/, '')
    const body = {
      kind: 'Event',
      apiVersion: 'v1',
      metadata: {
        name: `${name}.${process.hrtime.bigint().toString(16)}`,
        namespace: namespace ?? '',
      },
      involvedObject: { kind: 'Pod', apiVersion: 'v1', name, namespace, uid } as JsonObject,
      reason: 'Started',
      message: 'Container started',
      source: { component: 'kubelet', host: nodeName },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      type: 'Normal',
    }
    await ask(client, 'POST', `/api/v1/namespaces/${namespace}/events`, { body, fine: [201] })
  }

  /** Ends at once, as when it is killed. */
  [Symbol.dispose](): void {
    this.#held.dispose()
  }
}

const namesAt = (object: JsonObject, ...path: string[]): readonly string[] =>
  ((at(object, ...path) ?? []) as readonly JsonObject[]).map(({ name }) => name as string)
