import { X509Certificate } from 'node:crypto'
import type { Logger } from 'pino'
import { now } from '../../base/clock.ts'
import { joinHostPort } from '../../base/listening-sockets.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Listener } from '../../http/server/listener.ts'
import type { CheckResult } from '../../http/server/ops.ts'
import type { PriorityShares } from '../pipeline/priority-levels.ts'
import type { LogStore } from '../store/log/log-store.ts'
import type { Gauge, LastHour } from './answer-record.ts'
import type { HubContext } from './hub-context.ts'
import type { Health } from './health.ts'
import { memoryLimit } from './memory.ts'
import type { CloudParts } from './parts/cloud.ts'
import { maxConnections, type OpenSocket } from './proxies.ts'

/** The parts whose state is measured when metrics are read. */
interface GaugeSources extends HubContext, Pick<CloudParts, 'cloud' | 'connections' | 'serving'> {
  readonly store: LogStore
  readonly health: Health
}

/** Sets the gauges anew whenever metrics are read. */
export function gaugesOnRead(measured: GaugeSources): void {
  const { config, metrics, connections, serving, store, health } = measured
  const reportDiskWork = diskWorkReport(metrics, store)
  metrics.storeLimit.set(config.cacheMaxBytes)
  metrics.memoryLimit.set(memoryLimit(config))
  metrics.onRead(() => {
    showUpstreams(measured)
    showExpiry(metrics, 'client', connections.credentials.certificate?.chain)
    showExpiry(metrics, 'serving', (serving.current.elsewhere ?? serving.current).certificate)
    reportDiskWork()
    showAges(measured)
    metrics.storeBytes.set(store.bytes)
    metrics.yurthubErrorKeys.set(store.missed)
    metrics.yurthubErrorKeysStatus.set(health.storeFailure === undefined ? 1 : 0)
  })
}

interface LoadSources extends HubContext, Pick<GaugeSources, 'cloud' | 'store'> {
  readonly seats: PriorityShares
  readonly proxies: Readonly<Record<'plain' | 'secure', Pick<Listener, 'connections'>>>
}

/** Takes samples of the link and of what may become full, until disposed. */
export function measureLoad(
  hour: LastHour,
  { config, live, cloud, store, seats, proxies }: LoadSources,
): Disposable {
  const connectionsOf = ({ connections }: Pick<Listener, 'connections'>): Gauge => ({
    current: () => connections.open,
    most: () => connections.mostOpen(),
    limit: () => maxConnections,
  })
  return hour.measure({
    online: () => cloud.online,
    gauges: {
      seats: {
        current: () => seats.allTaken,
        most: () => seats.mostTaken(),
        limit: () => live().maxRequestsInFlight,
      },
      connections: connectionsOf(proxies.plain),
      secureConnections: connectionsOf(proxies.secure),
      memory: { current: () => process.memoryUsage.rss(), limit: () => memoryLimit(config) },
      cache: {
        current: () => store.bytes,
        limit: () => config.cacheMaxBytes,
      },
    },
  })
}

/** Logs the addresses of listeners that were not among those `before`. */
export function logListening(
  sockets: readonly OpenSocket[],
  before: readonly OpenSocket[],
  log: Logger,
): void {
  const known = new Set(before.map(({ at }) => joinHostPort(at)))
  for (const { name, at } of sockets) {
    const address = joinHostPort(at)
    if (!known.has(address)) log.info({ listener: name, address }, 'listening')
  }
}

/** Logs that all listeners serve, and which readiness checks fail. */
export function logReady(checks: readonly CheckResult[], log: Logger): void {
  const faults = checks.flatMap(({ name, required, fault }) =>
    required && fault !== undefined ? [`${name}: ${fault}`] : [],
  )
  if (faults.length === 0) log.info('ready')
  else log.warn({ faults }, 'serving, but not ready: see /readyz?verbose')
}

/** Adds what the store has written since the last call. */
function diskWorkReport(metrics: HubMetrics, store: LogStore): () => void {
  let reported = 0
  return () => {
    const { bytes } = store.diskWork
    metrics.storeDiskBytes.add(bytes - reported)
    reported = bytes
  }
}

/** The latest last: its value stays where several collections have the same labels. */
function showAges({ metrics, cloud, store }: GaugeSources): void {
  metrics.offlineSince.set(cloud.online === false ? cloud.since / 1000 : 0)
  metrics.cacheAge.clear()
  for (const { key, confirmedAt } of store.overview().collections.toReversed()) {
    const { resource } = key.gvr
    metrics.cacheAge.set({ resource }, Math.max(now() - confirmedAt, 0) / 1000)
  }
}

/** Shows the present upstreams only: addresses may change while the hub runs. */
function showUpstreams({ metrics, cloud, connections }: GaugeSources): void {
  const { upstreamHealthy, yurthubServerHealthy, upstreamConnections, yurthubConnections } = metrics
  const { credentialsRefused } = metrics
  for (const gauge of [upstreamHealthy, yurthubServerHealthy, upstreamConnections]) gauge.clear()
  yurthubConnections.clear()
  credentialsRefused.clear()
  for (const { origin, health, refusesCredentials } of cloud.upstreams) {
    // A rate needs a sample from before the first event.
    for (const outcome of ['answered', 'failed']) {
      metrics.upstreamRequests.add({ upstream: origin, outcome }, 0)
    }
    credentialsRefused.set({ upstream: origin }, refusesCredentials ? 1 : 0)
    if (health !== 'unknown') {
      upstreamHealthy.set({ upstream: origin }, health === 'healthy' ? 1 : 0)
      yurthubServerHealthy.set({ server: origin }, health === 'healthy' ? 1 : 0)
    }
    const { protocol, hostname, port } = new URL(origin)
    const server = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
    for (const name of ['http/1.1', 'h2'] as const) {
      upstreamConnections.set({ upstream: origin, protocol: name }, connections.open(origin, name))
    }
    yurthubConnections.set({ server }, connections.open(origin))
  }
}

/** Shows when the certificate at the head of `chain` (PEM) expires, if there is one. */
function showExpiry(metrics: HubMetrics, certificate: string, chain: string | undefined): void {
  if (chain === undefined) return
  const { validToDate } = new X509Certificate(chain)
  metrics.certificateExpiry.set({ certificate }, validToDate.getTime() / 1000)
}
