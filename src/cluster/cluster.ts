import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { follow, untilAborted } from '../base/abort.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { createClusterMetrics, type ClusterMetrics } from '../metrics/metrics.ts'
import { listenOps } from '../http/server/ops.ts'
import type { ApiServer } from './api/api-server.ts'
import { connect } from './api/connect.ts'
import { ServingCertificateApprover } from './certificates/approver.ts'
import { PoolController } from './controller/pool-controller.ts'
import { Leadership } from './leadership.ts'
import { liveLookup } from './live-lookup.ts'
import { poolInformer } from './pools.ts'
import { serveWebhooks } from './serve.ts'
import { keepCaBundles } from './serving/bundles.ts'
import { endOf } from './serving/certificate-secret.ts'
import { followFiles, servingOf, wrongWith } from './serving/serving.ts'
import { conflictsIn, describeConflict, takeOver } from './take-over.ts'

/** One running replica. Disposing it gives up the lease first, so that another leads at once. */
export interface Cluster extends AsyncDisposable {
  readonly webhookPort: number
  readonly opsPort: number
  readonly metrics: ClusterMetrics
  readonly leads: () => boolean
}

/** A yurt-manager runs that does nodehub's work. */
export class YurtManagerPresent extends Error {
  readonly code = 'BESIDE_YURT_MANAGER'
  /** A line for each conflict. */
  readonly conflicts: readonly string[]
  constructor(conflicts: readonly string[]) {
    super('a yurt-manager takes care of NodePools here')
    this.conflicts = conflicts
  }
}

export interface ClusterOptions {
  readonly log: Logger
  /** Called with a line for each part that was taken from a yurt-manager. */
  readonly onTaken?: (line: string) => void
}

/** Parts that retry after a failure. */
type Part = 'controller' | 'approver' | 'election' | 'certificates' | 'configurations' | 'admission'

/**
 * Builds the cluster's side from its parts, in order, and starts it. Resolves when admission is
 * served. Rejects with `YurtManagerPresent`, or with the first failure, and leaves nothing open
 * then.
 */
export async function startCluster(
  config: ClusterConfig,
  { log, onTaken = () => undefined }: ClusterOptions,
): Promise<Cluster> {
  await using parts = new AsyncDisposableStack()
  const metrics = createClusterMetrics()
  const { api } = parts.use(
    await connect(config, ({ method }, status) =>
      metrics.apiRequests.add({ verb: method.toLowerCase(), code: String(status ?? 0) }),
    ),
  )
  const failed = (part: Part) => (err: unknown, what?: string) => {
    metrics.failures.add({ reason: part })
    log.warn({ err, part, what }, 'something failed, and is tried again')
  }
  await refuseBesideYurtManager(config, api, onTaken)

  const pools = parts.use(poolInformer(api, { onFailure: failed('controller') }))
  const { service, serving: shown } = config.webhooks
  const own = { namespace: config.namespace, name: service }
  const serving = parts.use(
    await servingOf(shown, {
      api,
      service: own,
      onRenewed: ({ leaf }) => log.info({ end: endOf(leaf.certificate) }, 'certificates were made'),
      onFailure: failed('certificates'),
    }),
  )
  const clientCaFile = config.webhooks.clientCa
  const clientCa =
    clientCaFile === undefined
      ? undefined
      : parts.use(followFiles({ kind: 'files', ca: clientCaFile }, failed('certificates')))
  const webhooks = await serveWebhooks({
    address: config.webhooks.address,
    port: config.webhooks.port,
    certificate: () => serving.pair(),
    ...(clientCa && { clientCa: () => clientCa.current().ca }),
    lookup: liveLookup(api, pools),
    propagate: config.webhooks.podHostNetwork,
    unready: () => (pools.synced ? undefined : 'NodePools have not been listed yet'),
    onFailed: failed('admission'),
    onRefused: (reason) => metrics.reviewsRefused.add({ reason }),
  })
  parts.defer(() => webhooks.close(config.shutdownGracePeriodMs))

  let controller: PoolController | undefined
  const leadership = new Leadership({
    namespace: config.namespace,
    identity: `${hostname()}_${randomUUID()}`,
    ...config.election,
    api,
    onFailure: failed('election'),
    onChange: (leads, holder) =>
      log.info({ holder }, leads ? 'this replica leads' : 'this replica follows'),
    lead: async (term) => {
      await using led = new AsyncDisposableStack()
      const over = new AbortController()
      led.use(follow(term, over))
      const bundles = keepCaBundles(
        {
          api,
          service: own,
          bundle: () => serving.bundle(),
          onRepaired: (kind) => {
            metrics.repairs.add({ kind })
            log.info({ kind }, 'a caBundle was put right')
          },
          onFailure: failed('configurations'),
        },
        over.signal,
      )
      led.defer(() => {
        over.abort()
        return bundles
      })
      controller = led.use(
        new PoolController({
          api,
          term,
          workers: config.workers,
          onWrite: (kind) => metrics.writes.add({ kind }),
          onConflict: (kind) => metrics.conflicts.add({ kind }),
          onFailure: failed('controller'),
        }),
      )
      led.defer(() => {
        controller = undefined
      })
      led.use(
        new ServingCertificateApprover({
          api,
          term,
          rules: config.hubCertificates,
          nodes: controller.nodes,
          nodesListed: controller.listed,
          onDecided: (name, verdict, why) => {
            metrics.certificateRequests.add({ result: verdict })
            log.info(
              { name, verdict, why },
              "a node's request for its hub's certificate was decided",
            )
          },
          onFailure: failed('approver'),
        }),
      )
      await untilAborted(term)
    },
  })
  const ops = await listenOps({
    at: [{ host: config.ops.address, port: config.ops.port }],
    metrics,
    ownHosts: new Set([
      service,
      `${service}.${config.namespace}`,
      `${service}.${config.namespace}.svc`,
    ]),
    checks: [
      {
        name: 'nodepools',
        check: () => (pools.synced ? undefined : 'they have not been listed yet'),
      },
      { name: 'certificate', check: () => wrongWith(serving.pair()) },
    ],
    verboseLines: () => [`[ ]leader: ${leadership.holder || 'none'}`],
    onBroken: (err) => log.debug({ err }, 'a connection to the operators’ port broke off'),
  })
  parts.defer(() => ops.close(0))
  metrics.onRead(() => {
    metrics.leading.set(leadership.leads ? 1 : 0)
    metrics.pools.set(pools.items.size)
    metrics.nodes.set(controller?.nodes.size ?? 0)
    metrics.queued.set(controller?.depth ?? 0)
    metrics.withheld.set(controller?.withheld.size ?? 0)
    const end = endOf(serving.pair().certificate)
    if (end !== undefined) metrics.certificateEnd.set(end.getTime() / 1000)
  })
  // Last, so that it goes first: the parts that it leads end, and the lease is free, while
  // admission is still served.
  parts.use(leadership)

  const running = parts.move()
  return {
    webhookPort: webhooks.port,
    opsPort: ops.port,
    metrics,
    leads: () => leadership.leads,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Refuses to start where a yurt-manager does the same, unless it is to be taken from it. */
async function refuseBesideYurtManager(
  config: ClusterConfig,
  api: ApiServer,
  onTaken: (line: string) => void,
): Promise<void> {
  if (config.takeOver) {
    for (const taken of await takeOver(api, config.namespace))
      describeConflict(taken).forEach(onTaken)
    return
  }
  const conflicts = await conflictsIn(api)
  // A conversion alone does nothing to pools: it needs a request in another version.
  const lines = conflicts.filter(({ without }) => without).flatMap(describeConflict)
  if (lines.length > 0) throw new YurtManagerPresent(lines)
}
