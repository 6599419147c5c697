import { CertificateAuthority } from '../certificates/authority.ts'
import type { GVR } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { resourceNotFound, StatusError } from '../api/kube/status.ts'
import type { Authorizer } from './authentication.ts'
import type { Api } from './call.ts'
import { Faults } from './faults.ts'
import { Endpoint, type EndpointOptions, type ServingIdentity } from './endpoint.ts'
import type { Kind } from './kinds.ts'
import { printed, type KubeObject } from './object.ts'
import { PodLogs } from './pod-logs.ts'
import { Registry } from './registry.ts'
import { Requests, type SeenRequest } from './requests.ts'
import { LaggingView, Storage } from './storage.ts'
import { Tokens } from './tokens.ts'
import type { User } from './users.ts'
import { Watches } from './watches.ts'
import type { DeleteOptions } from './write-rules.ts'

export interface SandboxOptions {
  /** Default: an address of loopback. */
  readonly host?: string
  /** Default: any free port. */
  readonly port?: number
  /** Default: true. Without, clients cannot show certificates. */
  readonly tls?: boolean
  /** Whether who proves nothing is let in as system:anonymous. Default: over plain HTTP only. */
  readonly anonymous?: boolean
  /** Who may do what. Default: everyone let in may do everything. */
  readonly authorizer?: Authorizer
  /** How many changes are remembered for watches and old lists. Default: 4096. */
  readonly history?: number
  /** The version before the first write. Default: 1000. */
  readonly firstVersion?: number
  /** Time between the bookmarks of a watch. Default: a minute. */
  readonly bookmarkMs?: number
  /** How long a reader waits for a version that has not come yet. Default: 3 s. */
  readonly freshnessMs?: number
  /** How much a watcher may leave unread before it is cut. Default: 16 MiB. */
  readonly watchQueueBytes?: number
  /** Whether watches may ask for initial events. Default: true. */
  readonly watchList?: boolean
  /**
   * Namespaces there are from the start. Default: default, kube-system, kube-public,
   * kube-node-lease.
   */
  readonly namespaces?: readonly string[]
  /** How long ago new objects are said to have been created. Default: now. */
  readonly createdAgoMs?: number
}

export interface ClientCertificate {
  readonly certificate: string
  readonly key: string
}

/** A second address of the same API. */
export interface LaggingEndpoint extends AsyncDisposable {
  readonly url: string
}

/**
 * An API server in memory, that behaves on the wire as kube-apiserver 1.35 does where a hub,
 * kubelet, kube-proxy or kubectl can tell. Members that touch objects work in process: they fail
 * with the StatusErrors a client would be sent.
 */
export interface Sandbox extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** PEM; undefined over plain HTTP. */
  readonly caCertificate: string | undefined
  readonly faults: SandboxFaults
  /** Requests seen, oldest first; only the latest 10,000. */
  readonly requests: readonly SeenRequest[]
  readonly requestCount: number
  /** The version of the last write. */
  readonly version: string

  /** A certificate the API server knows its users by. */
  clientCertificate(commonName: string, organizations?: readonly string[]): ClientCertificate
  /** A bearer token for a user. */
  token(user: User | string): string
  revoke(token: string): void
  /**
   * Takes whoever shows this token for a user, whatever stands in the token: as an authenticator
   * that is a webhook may.
   */
  accept(token: string, user: User): void

  create(gvr: GVR, object: JsonObject): KubeObject
  /** Overwrites whatever version there is. */
  update(gvr: GVR, object: JsonObject, subresource?: 'status'): KubeObject
  delete(gvr: GVR, name: string, namespace?: string, options?: Partial<DeleteOptions>): KubeObject
  get(gvr: GVR, name: string, namespace?: string): KubeObject | undefined
  list(gvr: GVR, namespace?: string): KubeObject[]
  /** Forgets all history: continues, old lists and old watches get 410. */
  compact(): void
  /** Lets a pod write to its log. */
  log(namespace: string, pod: string, text: string): void
  authorize(authorizer: Authorizer): void

  /** Requests that come after this call. */
  nextRequest(match?: (request: SeenRequest) => boolean): Promise<SeenRequest>
  watchCount(match?: (request: SeenRequest) => boolean): number
  /** Resolves when so many watches are open. */
  untilWatches(count: number, match?: (request: SeenRequest) => boolean): Promise<void>
  /** Ends watches cleanly, as their deadlines do. */
  endWatches(match?: (request: SeenRequest) => boolean): void
  /**
   * Another API server of the same cluster, whose answers are so many writes old. Faults strike it
   * too.
   */
  lag(versions: number): Promise<LaggingEndpoint>
}

export interface SandboxFaults extends Omit<Faults, 'striking' | 'isFrozen' | 'follow'> {
  /** As if the process had ended: connections are closed and new ones refused. */
  refuse(): Promise<AsyncDisposable>
}

const firstNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** Listens when it resolves. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const tls = options.tls ?? true
  const host = options.host ?? '127.0.0.1'
  const authority = tls ? new CertificateAuthority('sandbox-ca') : undefined
  const storage = new Storage(options.firstVersion ?? 1000, options.history ?? 4096)
  const registry = new Registry(storage, options.createdAgoMs)
  const [tokens, requests, watches, logs] = [
    new Tokens(),
    new Requests(),
    new Watches(),
    new PodLogs(),
  ]
  let authorizer: Authorizer = options.authorizer ?? (() => true)
  const api: Api = {
    registry,
    tokens,
    watches,
    logs,
    freshnessMs: options.freshnessMs ?? 3000,
    watchSettings: {
      bookmarkMs: options.bookmarkMs ?? 60_000,
      queueBytes: options.watchQueueBytes ?? 16 * 1024 * 1024,
      watchListServed: options.watchList ?? true,
    },
    anonymousAllowed: options.anonymous ?? !tls,
    authorizer: () => authorizer,
  }
  const fronts = new Set<Endpoint>()
  const faults = new Faults(() => fronts.forEach((front) => front.reset()))
  const identity = authority && servingIdentity(authority, host)
  const frontOptions: EndpointOptions = {
    api,
    view: storage,
    faults,
    requests,
    host,
    port: options.port ?? 0,
    ...(identity && { identity }),
  }
  const front = new Endpoint(frontOptions)
  const open = async (one: Endpoint): Promise<void> => {
    await one.open()
    fronts.add(one)
  }
  await open(front)
  const kindOf = (gvr: GVR): Kind => {
    const kind = registry.catalog.find(gvr)
    if (!kind) throw new StatusError(resourceNotFound())
    return kind
  }
  const namespaceKind = kindOf({ group: '', version: 'v1', resource: 'namespaces' })
  for (const name of options.namespaces ?? firstNamespaces) {
    registry.create(namespaceKind, undefined, { metadata: { name } }, { dryRun: false })
  }
  const namespaceOf = (kind: Kind, object: JsonObject): string | undefined =>
    kind.namespaced
      ? ((object['metadata'] as JsonObject | undefined)?.['namespace'] as string | undefined)
      : undefined

  return {
    url: front.url,
    port: front.port,
    caCertificate: authority?.certificate,
    faults: sandboxFaults(faults, front),
    get requests() {
      return requests.seen
    },
    get requestCount() {
      return requests.count
    },
    get version() {
      return String(storage.version)
    },
    clientCertificate(commonName, organizations = []) {
      if (!authority) throw new Error('over plain HTTP clients cannot show certificates')
      return authority.issue({ commonName, organizations, usage: 'client' })
    },
    token: (user) => tokens.issue(typeof user === 'string' ? { name: user, groups: [] } : user),
    revoke: (token) => tokens.revoke(token),
    accept: (token, user) => tokens.accept(token, user),
    create(gvr, object) {
      const kind = kindOf(gvr)
      return registry.create(kind, namespaceOf(kind, object), object, { dryRun: false })
    },
    update(gvr, object, subresource) {
      const kind = kindOf(gvr)
      const namespace = namespaceOf(kind, object)
      const metadata = object['metadata'] as JsonObject
      const name = printed(metadata['name'])
      const { resourceVersion } = registry.get(kind, namespace, name).metadata
      const current = { ...object, metadata: { ...metadata, resourceVersion } }
      return registry.update(kind, namespace, name, current, { dryRun: false }, subresource).object
    },
    delete: (gvr, name, namespace, deletion) =>
      registry.delete(kindOf(gvr), namespace, name, { dryRun: false, ...deletion }).object,
    get: (gvr, name, namespace) => registry.find(kindOf(gvr), namespace, name),
    list(gvr, namespace) {
      const objects = [...storage.at(kindOf(gvr), storage.version).values()]
      return namespace === undefined
        ? objects
        : objects.filter(({ metadata }) => metadata.namespace === namespace)
    },
    compact: () => storage.compact(),
    log: (namespace, pod, text) => logs.write(namespace, pod, text),
    authorize(other) {
      authorizer = other
    },
    nextRequest: (match = () => true) => requests.next(match),
    watchCount: (match) => watches.count(match),
    untilWatches: (count, match) => watches.until(count, match),
    endWatches: (match) => watches.end(match),
    async lag(versions) {
      const second = new Endpoint({
        ...frontOptions,
        port: 0,
        view: new LaggingView(storage, versions),
      })
      await open(second)
      return {
        url: second.url,
        async [Symbol.asyncDispose]() {
          fronts.delete(second)
          await second.dispose()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...fronts].map((one) => one.dispose()))
    },
  }
}

function servingIdentity(authority: CertificateAuthority, host: string): ServingIdentity {
  const { certificate, key } = authority.issue({
    commonName: 'kube-apiserver',
    organizations: [],
    usage: 'server',
    dnsNames: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
    ipAddresses: [...new Set([host, '127.0.0.1', '::1', '10.96.0.1'])],
  })
  return { certificate, key, clientCa: authority.certificate }
}

function sandboxFaults(faults: Faults, front: Endpoint): SandboxFaults {
  return {
    reset: (match) => faults.reset(match),
    freeze: (match) => faults.freeze(match),
    cut: (bytes, match) => faults.cut(bytes, match),
    delay: (ms, match) => faults.delay(ms, match),
    fail: (status, match) => faults.fail(status, match),
    failAsGateway: (status, match) => faults.failAsGateway(status, match),
    async refuse() {
      await front.close()
      return { [Symbol.asyncDispose]: () => front.open() }
    },
  }
}
