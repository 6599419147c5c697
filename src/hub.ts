import { X509Certificate } from 'node:crypto'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import { builtInFilters } from '../filters/index.ts'
import { now } from './base/clock.ts'
import { makeFolder } from './base/folder.ts'
import { keptKey } from './base/kept-key.ts'
import { Recorder, type IsRecorded } from './cache/recorder.ts'
import { Connections } from './client/connections.ts'
import { followCredentials, loadCredentials } from './client/credential-follower.ts'
import type { HubConfig } from './config/hub-config.ts'
import type { ListenerName } from './config/passed-sockets.ts'
import type { Exchange } from './exchange/exchange.ts'
import type { OnUnpacked } from './exchange/unpacked.ts'
import { filterChain, type FilterChain } from './filter/chain.ts'
import type { FilterDefinition } from './filter/filter.ts'
import { Claims } from './identity/claims.ts'
import { ClusterKeys } from './identity/cluster-keys.ts'
import { Proofs } from './identity/proofs.ts'
import { SocketOwners } from './identity/socket-owner.ts'
import { createMetrics, type HubMetrics } from './metrics/metrics.ts'
import { pipeline } from './pipeline/pipeline.ts'
import { countingBytes } from './pipeline/traffic.ts'
import type { AnswerLine } from './pipeline/trace.ts'
import { Cloud } from './remote/cloud.ts'
import { compressing } from './remote/compression.ts'
import { forwarder } from './remote/forward.ts'
import { readiness } from './remote/probe.ts'
import { upgrader } from './remote/upgrade.ts'
import { Upstream } from './remote/upstream.ts'
import { listen, listenSecurely, type Listener } from './server/listener.ts'
import type { Place } from './server/listening.ts'
import { listenOps } from './server/ops.ts'
import { Serving } from './server/serving.ts'
import { bytesOnDisk, openStore } from './store/sqlite/open.ts'

/** A running hub. Disposing it drains what is under way for as long as the configuration allows, then cuts. */
export interface Hub extends AsyncDisposable {
  /** Where the plain proxy listens; `undefined` where it does not. */
  readonly proxyPort: number | undefined
  /** Where the TLS proxy listens. */
  readonly proxySecurePort: number
  readonly opsPort: number
  /** Where it listens, for a process that is to take over. */
  readonly sockets: readonly { readonly name: ListenerName; readonly fd: number }[]
  readonly metrics: HubMetrics
  /** `undefined` before the first verdict. */
  readonly online: () => boolean | undefined
  /** Goes over to another configuration in what can be changed while the hub runs, without ending a watch. */
  reconfigure(config: HubConfig): void
  /** Says in metrics and readiness that the configuration has become unusable, and that the last good one is in force. */
  keepConfig(mistakes: readonly string[]): void
  /** Resolves when the hub has stopped, however that came. */
  readonly closed: Promise<void>
}

export interface HubOptions {
  readonly log: Logger
  /**
   * Resolves when no other process keeps its state where this hub is to; absent: none does. Called when all else that can be found out
   * beforehand is known to be well.
   */
  readonly turn?: () => Promise<void>
  /** Told when the cloud goes or comes back. */
  readonly onOnline?: (online: boolean) => void
  /** Told of each answer when it is over. */
  readonly onAnswer?: (line: AnswerLine) => void
}

/** How often credential files are looked at. */
const credentialsMs = 5_000

/** How long a process that has let go of the state, or is at its end, may still seem to hold it. */
const lettingGoMs = 10_000

/** Connections beyond any node's need (a kubelet has two a secret it mounts), below what file handles allow. */
const maxConnections = 4_096

/**
 * Builds a hub from its parts, in order, and starts it: reads credentials, opens the store, listens. Resolves when requests are served,
 * which does not wait for the cloud. Rejects with the first thing that cannot be; nothing is left open then.
 */
export async function startHub(
  config: HubConfig,
  { log, turn, onOnline, onAnswer }: HubOptions,
): Promise<Hub> {
  await using parts = new AsyncDisposableStack()
  const metrics = createMetrics({ components: config.cacheComponents })
  const health = { store: undefined as string | undefined, config: undefined as string | undefined }
  let inForce = config
  makeFolder(config.rootDir, 0o700)

  const credentials = loadCredentials(config.credentials)
  const serving = parts.use(
    new Serving({
      folder: join(config.rootDir, 'pki'),
      names: servingNames(config),
      given: config.tls.serving,
      clientCa: config.tls.clientCa,
      upstreamCa: credentials.ca,
      onAuthorityMade: () =>
        log.warn(
          'a new authority was made: clients of the TLS proxy have to be told whom to trust',
        ),
      onUnusable: (err) =>
        log.warn(
          { err },
          "the TLS listener's certificates have changed and cannot be used; the last good ones stay",
        ),
    }),
  )
  const connections = parts.use(new Connections(credentials))
  const credentialFollower = parts.use(
    followCredentials(
      config.credentials,
      credentials,
      credentialsMs,
      (changed) => {
        log.info('the credentials have changed')
        connections.replaceCredentials(changed)
        serving.replaceUpstreamCa(changed.ca)
      },
      (err) =>
        log.warn(
          { err },
          'the credentials have changed and cannot be used; the last good ones stay',
        ),
    ),
  )

  const cloud = parts.use(
    new Cloud({
      origins: config.serverAddresses.map(({ origin }) => origin),
      build: (origin, onVerdict) =>
        new Upstream(origin, readiness(connections), inForce.heartbeat, {
          onVerdict: ({ verdict, lastError: err }) => {
            log.info({ upstream: origin, verdict, err }, 'an API server is judged anew')
            onVerdict()
          },
          onEjected: (_upstream, forMs) => {
            metrics.upstreamEjections.add({ upstream: origin })
            const seconds = Math.round(forMs / 1000)
            log.warn(
              { upstream: origin, seconds },
              'requests fail at an API server: others go first',
            )
          },
        }),
      mode: config.lbMode,
      onOnline: (online) => {
        metrics.online.set(online ? 1 : 0)
        log.warn(
          online ? 'online: an API server can be reached' : 'offline: answering from the cache',
        )
        onOnline?.(online)
      },
      onGone: (origin) => connections.drop(origin),
    }),
  )

  if (turn) {
    await cloud.settled()
    await turn()
  }
  const store = parts.use(
    await openStore({
      directory: config.cachePath,
      keyFile: join(config.rootDir, 'seal.key'),
      ...(turn && { patienceMs: lettingGoMs }),
      report: (kind, err) => {
        if (kind === 'write') {
          health.store = err.message
          metrics.storeFailures.add()
        }
        log.error({ err, kind }, 'the store failed')
      },
      onCommitted: (bytes) => {
        health.store = undefined
        metrics.storeCommits.add()
        metrics.storeWrittenBytes.add(bytes)
      },
    }),
  )

  const filtersOf = (current: HubConfig): FilterChain =>
    filterChain(
      enabledFilters(current),
      { hubAddress: reachableByPods(config), warn: (message) => log.warn(message) },
      (filter, err) => {
        metrics.filterErrors.add({ filter })
        log.error({ filter, err }, 'a filter failed')
      },
    )
  let chain = filtersOf(config)
  const filters: FilterChain = { chainFor: (...asked) => chain.chainFor(...asked) }

  metrics.onRead(() => {
    showUpstreams(metrics, cloud, connections)
    showExpiry(metrics, 'client', connections.certificate)
    showExpiry(metrics, 'serving', serving.current.certificate)
    metrics.storeBytes.set(bytesOnDisk(config.cachePath))
    metrics.unfitCollections.set(store.unfitCollections)
    metrics.yurthubErrorKeys.set(store.unfitCollections)
    metrics.yurthubErrorKeysStatus.set(health.store === undefined ? 1 : 0)
  })

  const onUnpacked: OnUnpacked = (packed, unpacked) => {
    metrics.upstreamCompressedBytes.add(packed)
    metrics.upstreamInflatedBytes.add(unpacked)
  }
  const forward = countingBytes(forwarder(cloud, connections), metrics)
  const clusterKeys = new ClusterKeys(join(config.rootDir, 'service-account-keys.json'))
  const proofs = parts.use(
    new Proofs(join(config.rootDir, 'proofs.json'), (err) =>
      log.error({ err }, 'which tokens were accepted could not be written'),
    ),
  )
  const stopping = new AbortController()
  const handler = pipeline({
    callers: {
      nodeName: config.nodeName,
      plainServed: config.proxy.plain === 'served',
      get anonymousLoopback() {
        return inForce.anonymousLoopback
      },
      claims: new Claims(keptKey(join(config.rootDir, 'token.key')), proofs, clusterKeys),
      owners: new SocketOwners(),
    },
    metrics,
    filters,
    learning: {
      keys: clusterKeys,
      onLearned: () => log.info('the keys of service accounts are known'),
      onFailure: (err) => log.debug({ err }, 'the keys of service accounts could not be had'),
    },
    get maxRequestsInFlight() {
      return inForce.maxRequestsInFlight
    },
    memoryLimitBytes: config.memoryLimitBytes ?? givenMemory(),
    stopping: stopping.signal,
    ownHosts: ownHosts(config),
    dispatch: {
      cloud,
      forward: compressing(forward, {
        always: () => inForce.upstreamCompression,
        mayChange: isFilteredBy(filters),
        onUnpacked,
      }),
      upgrade: upgrader(cloud, connections),
      recorder: new Recorder(
        store,
        recordedBy(() => inForce, filters),
        {
          onRecorded: (kind) => metrics.recorded.add({ kind }),
          onStoreFailure: (err) => log.error({ err }, 'an answer could not be recorded'),
          onMalformed: (err, { method, info }) => {
            metrics.malformed.add()
            log.warn({ err, method, path: info.path }, 'an answer could not be understood')
          },
          onUnpacked,
        },
      ),
      local: {
        store,
        nodeName: config.nodeName,
        minRequestTimeoutMs: config.minRequestTimeoutMs,
        // Answered from the cache although the cloud is taken to be there: nobody is going to say that it is back.
        recovered: () => (cloud.online === true ? AbortSignal.abort() : cloud.spell),
      },
      onOutcome: (upstream, outcome) => metrics.upstreamRequests.add({ upstream, outcome }),
      onDiverted: () => metrics.diverted.add(),
    },
    onUnforeseen: (err, { method, url }) => {
      log.error({ err, method, path: url.split('?')[0] }, 'a request failed unforeseen')
    },
    onAnswer: (line) => {
      log.debug(line, 'answered')
      onAnswer?.(line)
    },
  })

  const ops = await listenOps({
    ...placeOf(config, 'ops', config.ops),
    metrics,
    ownHosts: ownHosts(config),
    checks: [
      {
        name: 'store',
        check: () => health.store ?? (store.isInPlace() ? undefined : misplaced(config)),
      },
      {
        name: 'shutdown',
        check: () => (stopping.signal.aborted ? 'the hub is stopping' : undefined),
      },
    ],
    remarks: () => [
      spellRemark(cloud),
      ...cloud.upstreams.map(upstreamRemark),
      ...(health.config === undefined ? [] : [health.config]),
    ],
    onBroken: (err) => log.debug({ err }, 'a connection to the operators’ port broke off'),
  })
  parts.defer(() => ops.close(0))
  const proxied = {
    handler,
    maxConnections,
    onBroken: (err: unknown) => {
      metrics.brokenAnswers.add()
      log.info({ err }, 'an answer broke off')
    },
    onCut: (reason: string) => metrics.connectionsCut.add({ reason }),
  }
  const proxies: Listener[] = []
  parts.defer(
    async () =>
      void (await Promise.all(proxies.map((proxy) => proxy.close(inForce.shutdownGracePeriodMs)))),
  )
  const plain =
    config.proxy.plain === 'off'
      ? undefined
      : await listen({ ...proxied, ...placeOf(config, 'proxy', config.proxy) })
  if (plain) proxies.push(plain)
  const secure = await listenSecurely({
    ...proxied,
    ...placeOf(config, 'proxy-secure', { ...config.proxy, port: config.proxy.securePort }),
    credentials: serving.current,
  })
  proxies.push(secure)
  serving.follow(secure)
  parts.defer(() => stopping.abort())

  const running = parts.move()
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<void>()
  return {
    proxyPort: plain?.port,
    proxySecurePort: secure.port,
    opsPort: ops.port,
    sockets: [
      { name: 'ops', fd: ops.fd },
      ...(plain ? [{ name: 'proxy' as const, fd: plain.fd }] : []),
      { name: 'proxy-secure', fd: secure.fd },
    ],
    metrics,
    online: () => cloud.online,
    reconfigure: (next) => {
      // What the filters remember is worth keeping.
      if (!isDeepStrictEqual(enabledFilters(next), enabledFilters(inForce))) chain = filtersOf(next)
      inForce = next
      health.config = undefined
      metrics.configReloads.add({ result: 'success' })
      cloud.replace(next.serverAddresses.map(({ origin }) => origin))
      cloud.balanceBy(next.lbMode)
      for (const upstream of cloud.upstreams) upstream.judgeBy(next.heartbeat)
      credentialFollower.move(next.credentials)
    },
    keepConfig: (mistakes) => {
      metrics.configReloads.add({ result: 'failure' })
      const since = new Date(now()).toISOString()
      health.config = `[ ]config unusable since ${since}, the last good one is in force: ${mistakes.join('; ')}`
    },
    closed,
    [Symbol.asyncDispose]: () => running.disposeAsync().finally(onClosed),
  }
}

/** The socket that was passed for a listener, else its own address. */
function placeOf(
  { sockets }: HubConfig,
  listener: ListenerName,
  { address, port }: { readonly address: string; readonly port: number },
): Place {
  const fd = sockets[listener]
  return fd === undefined ? { host: address, port } : { fd }
}

/** Of those there are now: addresses may change while the hub runs. */
function showUpstreams(metrics: HubMetrics, cloud: Cloud, connections: Connections): void {
  const { upstreamHealthy, yurthubServerHealthy, upstreamConnections, yurthubConnections } = metrics
  for (const gauge of [upstreamHealthy, yurthubServerHealthy, upstreamConnections]) gauge.clear()
  yurthubConnections.clear()
  for (const { origin, verdict } of cloud.upstreams) {
    if (verdict !== 'unknown') {
      upstreamHealthy.set({ upstream: origin }, verdict === 'healthy' ? 1 : 0)
      yurthubServerHealthy.set({ server: origin }, verdict === 'healthy' ? 1 : 0)
    }
    const { protocol, hostname, port } = new URL(origin)
    const server = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
    for (const name of ['http/1.1', 'h2'] as const) {
      upstreamConnections.set({ upstream: origin, protocol: name }, connections.open(origin, name))
    }
    yurthubConnections.set({ server }, connections.open(origin))
  }
}

/** The end of a certificate, in PEM; nothing where there is none. */
function showExpiry(metrics: HubMetrics, certificate: string, chain: string | undefined): void {
  if (chain === undefined) return
  const { validToDate } = new X509Certificate(chain)
  metrics.certificateExpiry.set({ certificate }, validToDate.getTime() / 1000)
}

/** What clients may have been told to call the hub by, as its certificate has it. */
function servingNames(config: HubConfig): string[] {
  const unspecified = new Set(['0.0.0.0', '::'])
  const names = ['127.0.0.1', '::1', 'localhost', ...ownHosts(config)]
  return [...new Set(names)].filter((name) => !unspecified.has(name))
}

/** What the control group allows; where it allows all there is, what a node can well spare. */
function givenMemory(): number {
  const given = process.constrainedMemory()
  return given > 0 && given < totalmem() ? given : 512 * 1024 * 1024
}

/** By what names, besides loopback's, the node's programs may have been told to call the hub. */
function ownHosts({ proxy, ops, pods, nodeName }: HubConfig): ReadonlySet<string> {
  const names = [proxy.address, ops.address, pods.dummyAddress, pods.hubAddress?.host, nodeName]
  return new Set(names.flatMap((name) => (name === undefined ? [] : [name.toLowerCase()])))
}

/** Answers to the components that are recorded, and those that a filter acts on, which has to look into them anyway. */
const recordedBy =
  (config: () => HubConfig, filters: FilterChain): IsRecorded =>
  (exchange) => {
    const { cacheComponents } = config()
    if (cacheComponents.has('*') || cacheComponents.has(exchange.component)) return true
    return isFilteredBy(filters)(exchange)
  }

const isFilteredBy =
  (filters: FilterChain) =>
  ({ component, info }: Exchange): boolean =>
    info.isResource && filters.chainFor(component, info.gvr, info.verb) !== undefined

const enabledFilters = ({ filters }: HubConfig): readonly FilterDefinition[] =>
  filters.enabled && !filters.disabled.has('*')
    ? builtInFilters.filter(({ name }) => !filters.disabled.has(name))
    : []

/**
 * Where pods reach the hub: only what the operator vouches for. By itself it listens on loopback, and shows what pods do not trust.
 */
const reachableByPods = ({ pods }: HubConfig): { host: string; port: number } | undefined =>
  pods.hubAddress

function upstreamRemark({ origin, verdict, standing, ejectedForMs, lastError }: Upstream): string {
  const mark = standing === 'ready' ? '[+]' : '[ ]'
  const ejected =
    standing === 'ejected'
      ? `, asked last for ${Math.ceil(ejectedForMs / 1000)} s: requests fail`
      : ''
  const why = lastError === undefined ? '' : `, last probe: ${lastError.message}`
  return `${mark}upstream ${origin} ${verdict}${ejected}${why}`
}

const misplaced = ({ cachePath }: HubConfig): string =>
  `${cachePath} was removed or replaced under the hub: what it records is lost with its process, start it again`

function spellRemark({ online, since }: Cloud): string {
  if (online === undefined) return '[ ]cloud not yet judged'
  const from = new Date(since).toISOString()
  return online
    ? `[+]cloud online since ${from}`
    : `[ ]cloud offline since ${from}; serving the cache`
}
