import { CertificateAuthority } from '../certificates/authority.ts'
import type { GVR } from '../api/kube/gvk.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { optionalTextAt, textAt, withAt } from '../api/kube/json-at.ts'
import type { Authorizer } from './authentication.ts'
import type { Api } from './call.ts'
import { Faults, type RequestMatch } from './faults.ts'
import { Endpoint, type EndpointOptions, type ServingIdentity } from './endpoint.ts'
import type { Kind } from './kinds.ts'
import type { KubeObject } from './object.ts'
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
  /** The cluster's CA. Default: one of its own. */
  readonly authority?: CertificateAuthority
  /** Whether requests without credentials are system:anonymous. Default: over plain HTTP only. */
  readonly anonymous?: boolean
  /** Default: every authenticated user may do everything. */
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
  /** Whether watches with sendInitialEvents are served. Default: true. */
  readonly watchList?: boolean
  /**
   * Namespaces there are from the start. Default: default, kube-system, kube-public,
   * kube-node-lease.
   */
  readonly namespaces?: readonly string[]
  /** The age of new objects. Default: 0. */
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

/** Another API server of the same cluster, with faults of its own. */
export interface Replica extends LaggingEndpoint {
  readonly faults: Faults
}

/** See `startSandbox`. */
export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

const firstNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/**
 * An API server in memory that behaves on the wire as kube-apiserver 1.35, as far as a hub,
 * kubelet, kube-proxy or kubectl can observe. Members that read or write objects work in process,
 * and fail with the StatusErrors that a client would get. Listens when it resolves.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const { host = '127.0.0.1', tls = true } = options
  const authority = tls
    ? (options.authority ?? (await CertificateAuthority.create('sandbox-ca')))
    : undefined
  const storage = new Storage(options.firstVersion ?? 1000, options.history ?? 4096)
  const registry = new Registry(storage, options.createdAgoMs)
  const tokens = new Tokens()
  const requests = new Requests()
  const watches = new Watches()
  const logs = new PodLogs()
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
  const endpoints = new Set<Endpoint>()
  const faults = new Faults({
    reset: () => endpoints.forEach((each) => each.reset()),
    open: () => endpoint.open(),
    close: () => endpoint.close(),
  })
  const identity = authority && (await servingIdentity(authority, host))
  const endpointOptions: EndpointOptions = {
    api,
    view: storage,
    faults,
    requests,
    host,
    port: options.port ?? 0,
    ...(identity && { identity }),
  }
  const opened = async (of: EndpointOptions): Promise<Endpoint> => {
    const one = new Endpoint(of)
    await one.open()
    endpoints.add(one)
    return one
  }
  const endpoint = await opened(endpointOptions)
  const kindOf = (gvr: GVR): Kind => registry.catalog.get(gvr)
  const namespaceKind = kindOf({ group: '', version: 'v1', resource: 'namespaces' })
  for (const name of options.namespaces ?? firstNamespaces) {
    registry.create(namespaceKind, undefined, { metadata: { name } })
  }
  const namespaceOf = (kind: Kind, object: JsonObject): string | undefined =>
    kind.namespaced ? optionalTextAt(object, 'metadata', 'namespace') : undefined

  return {
    url: endpoint.url,
    port: endpoint.port,
    /** PEM; undefined over plain HTTP. */
    caCertificate: authority?.certificate,
    faults,
    /** Requests received, oldest first; only the latest 10,000. */
    get requests(): readonly SeenRequest[] {
      return requests.seen
    },
    /** The version of the last write. */
    get version(): string {
      return String(storage.version)
    },

    /** A certificate by which the API server authenticates a user. */
    async clientCertificate(
      commonName: string,
      organizations: readonly string[] = [],
    ): Promise<ClientCertificate> {
      if (!authority) throw new Error('over plain HTTP clients cannot show certificates')
      return authority.issue({ commonName, organizations, usage: 'client' })
    },
    /** A bearer token for a user. */
    token: (user: User | string): string =>
      tokens.issue(typeof user === 'string' ? { name: user, groups: [] } : user),
    revoke: (token: string): void => tokens.revoke(token),
    /** Authenticates this token as a user, whatever it contains, as a webhook authenticator may. */
    accept: (token: string, user: User): void => tokens.accept(token, user),

    create(gvr: GVR, object: JsonObject): KubeObject {
      const kind = kindOf(gvr)
      return registry.create(kind, namespaceOf(kind, object), object)
    },
    /** Overwrites whatever version there is. */
    update(gvr: GVR, object: JsonObject, subresource?: 'status'): KubeObject {
      const kind = kindOf(gvr)
      const namespace = namespaceOf(kind, object)
      const name = textAt(object, 'metadata', 'name')
      const { resourceVersion } = registry.get(kind, namespace, name).metadata
      const current = withAt(object, ['metadata', 'resourceVersion'], resourceVersion)
      return registry.update(kind, namespace, name, current, subresource).object
    },
    delete: (
      gvr: GVR,
      name: string,
      namespace?: string,
      deletion: DeleteOptions = {},
    ): KubeObject => registry.delete(kindOf(gvr), namespace, name, deletion).object,
    get: (gvr: GVR, name: string, namespace?: string): KubeObject | undefined =>
      registry.find(kindOf(gvr), namespace, name),
    list(gvr: GVR, namespace?: string): KubeObject[] {
      const objects = [...storage.at(kindOf(gvr), storage.version).values()]
      return namespace === undefined
        ? objects
        : objects.filter(({ metadata }) => metadata.namespace === namespace)
    },
    /** Forgets all history: continues, old lists and old watches get 410. */
    compact: (): void => storage.compact(),
    /** Appends to the log of a pod. */
    log: (namespace: string, pod: string, text: string): void => logs.write(namespace, pod, text),
    authorize(other: Authorizer): void {
      authorizer = other
    },

    /** Requests that come after this call. */
    nextRequest: (match: RequestMatch = () => true): Promise<SeenRequest> => requests.next(match),
    watchCount: (match?: RequestMatch): number => watches.count(match),
    /** Resolves when so many watches are open. */
    untilWatches: (count: number, match?: RequestMatch): Promise<void> =>
      watches.until(count, match),
    /** Ends watches cleanly, as their deadlines do. */
    endWatches: (match?: RequestMatch): void => watches.end(match),
    /**
     * Another API server of the same cluster, whose view is `versions` writes old. Faults strike it
     * too.
     */
    lag: (versions: number): Promise<LaggingEndpoint> =>
      opened({ ...endpointOptions, port: 0, view: new LaggingView(storage, versions) }),
    async replica(): Promise<Replica> {
      const own: Faults = new Faults({
        reset: () => second.reset(),
        open: () => second.open(),
        close: () => second.close(),
      })
      const second = await opened({ ...endpointOptions, port: 0, faults: own })
      return second
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([...endpoints].map((one) => one[Symbol.asyncDispose]()))
    },
  }
}

async function servingIdentity(
  authority: CertificateAuthority,
  host: string,
): Promise<ServingIdentity> {
  const { certificate, key } = await authority.issue({
    commonName: 'kube-apiserver',
    organizations: [],
    usage: 'server',
    dnsNames: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
    ipAddresses: [...new Set([host, '127.0.0.1', '::1', '10.96.0.1'])],
  })
  return { certificate, key, clientCa: authority.certificate }
}
