import type { GVR } from '../../src/api/kube/gvk.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { textAt } from '../../src/api/kube/json-at.ts'
import {
  configMaps,
  csiNodes,
  nodes,
  pods,
  secrets,
  serviceAccounts,
  services,
} from '../../src/api/kube/resources.ts'
import {
  startSandbox,
  type ClientCertificate,
  type Sandbox,
  type SandboxOptions,
} from '../../src/sandbox/sandbox.ts'
import { Client, objectOf, type ClientOptions } from './client.ts'
import { freePort } from './free-port.ts'
import type { Teardown } from './wire/wire.ts'

export const nodeName = 'edge-1'

export { configMaps, csiNodes, nodes, pods, secrets, serviceAccounts, services }

/** The path of the node's pods, as its kubelet requests them. */
export const podsOfNode = `/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName}`
export const allServices = '/api/v1/services'

export const pod = (name: string, rest: JsonObject = {}): JsonObject => ({
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec: { nodeName, containers: [{ name: 'main', image: 'registry.example/main:1' }] },
  ...rest,
})

export const service = (name: string, clusterIP: string, namespace = 'default'): JsonObject => ({
  metadata: { name, namespace },
  spec: {
    clusterIP,
    clusterIPs: [clusterIP],
    ports: [{ name: 'https', port: 443, targetPort: 6443 }],
  },
})

/** The request by which a hub knows its cluster. */
export const identifiesCluster = ({ url }: { readonly url: string }): boolean =>
  url === '/api/v1/namespaces/default/services?fieldSelector=metadata.name%3Dkubernetes'

/** An API server that can be unplugged. */
export class CloudServer {
  readonly sandbox: Sandbox
  readonly #node: ClientCertificate | undefined
  #unplugged: AsyncDisposable | undefined

  /** `node`: its certificate, over TLS. */
  constructor(sandbox: Sandbox, node: ClientCertificate | undefined) {
    this.sandbox = sandbox
    this.#node = node
  }

  /** The node's certificate, over TLS. */
  get node(): ClientCertificate {
    if (!this.#node) throw new Error('over plain HTTP the node has no certificate')
    return this.#node
  }

  get url(): string {
    return this.sandbox.url
  }

  /** Connections are closed, and new ones refused. */
  async unplug(): Promise<void> {
    this.#unplugged ??= await this.sandbox.faults.refuse()
  }

  async plug(): Promise<void> {
    await this.#unplugged?.[Symbol.asyncDispose]()
    this.#unplugged = undefined
  }

  /** A client of the API server itself; over TLS with the node's certificate. */
  as(component: string, options: Partial<ClientOptions> = {}): Client {
    const { caCertificate } = this.sandbox
    const shown = caCertificate !== undefined && options.token === undefined ? this.node : undefined
    return new Client({
      url: this.url,
      component,
      ...(caCertificate !== undefined && {
        tls: { ca: caCertificate, ...(shown && { cert: shown.certificate, key: shown.key }) },
      }),
      ...options,
    })
  }

  /** A token of the service account `reader` in the namespace default, as a kubelet requests it. */
  readerToken(expirationSeconds?: number): Promise<string> {
    return this.accountToken('reader', expirationSeconds)
  }

  /** The same of another account there. */
  async accountToken(name: string, expirationSeconds = 3_600): Promise<string> {
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds },
    }
    const answer = await this.as('kubelet').send(path, { method: 'POST', body })
    return textAt(objectOf(answer), 'status', 'token')
  }

  addPods(...names: string[]): void {
    for (const name of names) this.sandbox.create(pods, pod(name))
  }

  /** Changes an annotation of an object. */
  touch(gvr: GVR, name: string, namespace?: string): void {
    const object = this.sandbox.get(gvr, name, namespace)
    if (!object) throw new Error(`there is no ${gvr.resource} ${name}`)
    const annotations = { 'test.example/touched': this.sandbox.version }
    this.sandbox.update(gvr, { ...object, metadata: { ...object.metadata, annotations } })
  }
}

/** So old that the age in a Table is the same a second later. */
const createdAgoMs = 100 * 24 * 60 * 60_000

/**
 * Starts an API server over plain HTTP by default, with only the node. Its port is outside of the
 * range of outgoing connections, so that it is free again after an outage.
 */
export async function startCloud(t: Teardown, options: SandboxOptions = {}): Promise<CloudServer> {
  const sandbox = await startSandbox({
    tls: false,
    createdAgoMs,
    port: await freePort(),
    ...options,
  })
  t.teardown(() => sandbox[Symbol.asyncDispose]())
  sandbox.create(nodes, {
    metadata: { name: nodeName, labels: { 'kubernetes.io/hostname': nodeName } },
  })
  const node = sandbox.caCertificate
    ? await sandbox.clientCertificate(`system:node:${nodeName}`, ['system:nodes'])
    : undefined
  return new CloudServer(sandbox, node)
}
