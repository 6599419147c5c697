import { OpenList } from '../../src/base/open-list.ts'
import { RecordedReviews } from '../../src/hub/answers/recorded-reviews.ts'
import { NodeWrites } from '../../src/hub/answers/node-writes.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storedKey } from '../../src/base/stored-key.ts'
import { Cachers } from '../../src/hub/cache/cacher/cachers.ts'
import { Recorder } from '../../src/hub/cache/recorder.ts'
import { Connections } from '../../src/http/client/connections.ts'
import type { FilterDefinition } from '../../src/hub/filter/filter.ts'
import { Claims } from '../../src/hub/identity/claims.ts'
import { ClusterKeys } from '../../src/hub/identity/cluster-keys.ts'
import { TokenVerdicts } from '../../src/hub/identity/token-verdicts.ts'
import { SocketOwners } from '../../src/hub/identity/socket-owner.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import type { EnsureInputs, FilterParts } from '../../src/hub/pipeline/filtered-watch.ts'
import { RefusedReads } from '../../src/hub/boot/refused-reads.ts'
import { Admission } from '../../src/hub/pipeline/admission.ts'
import { pipeline } from '../../src/hub/pipeline/pipeline.ts'
import {
  withAuthenticationOutcome,
  withKnownAccount,
} from '../../src/hub/pipeline/authentication-outcome.ts'
import {
  upstreamHandlers,
  type DispatchParts,
  type UpstreamPathParts,
} from '../../src/hub/pipeline/dispatch.ts'
import { Cloud } from '../../src/hub/upstream/cloud.ts'
import { forwarder } from '../../src/hub/upstream/forward.ts'
import { readyzProbe } from '../../src/hub/upstream/probe.ts'
import { upgrader } from '../../src/hub/upstream/upgrade.ts'
import { Upstream } from '../../src/hub/upstream/upstream.ts'
import { listen } from '../../src/http/server/listener.ts'
import { openStore } from '../../src/hub/store/log/open.ts'
import type { ObjectStore } from '../../src/hub/store/store.ts'
import { Client, type ClientOptions } from './client.ts'
import { nodeName } from './cloud.ts'
import { filteringOf } from './filtering.ts'
import { filtersOf } from './inputs.ts'
import { noKubelet } from './kubelet-api.ts'
import type { Teardown } from './wire/wire.ts'
import { noOutage, nothingAccepted } from './no-outage.ts'

export interface PartsOptions {
  readonly upstream: { readonly url: string }
  /** Wraps the store. */
  readonly wrap?: (store: ObjectStore) => ObjectStore
  readonly filters?: readonly FilterDefinition[]
  /** Instead of `filters`. */
  readonly filtering?: Omit<FilterParts, 'ensureInputs'>
  /** Where it keeps its state, for a restart; absent: removed with the test. */
  readonly directory?: string
  readonly maxRequestsInFlight?: number
  /** What is waited for before filters look; absent: nothing. */
  readonly learn?: EnsureInputs
}

export interface PartsHub {
  readonly store: ObjectStore
  readonly cloud: Cloud
  /** The store's failures. */
  readonly storeFailures: unknown[]
  /** Malformed answers. */
  readonly malformed: unknown[]
  as(component: string, options?: Partial<ClientOptions>): Client
  /** Resolves when it has stopped; its state stays. */
  stop(): Promise<void>
}

/**
 * The data path of a hub in its own order, put together so that a test can stand between two parts
 * of it. Records everything.
 */
export async function startHubParts(
  t: Teardown,
  {
    upstream,
    wrap,
    filters = [],
    maxRequestsInFlight = 100,
    learn: ensureInputs = () => undefined,
    ...rest
  }: PartsOptions,
): Promise<PartsHub> {
  const rootDir = rest.directory ?? mkdtempSync(join(tmpdir(), 'nodehub-parts-'))
  const parts = new AsyncDisposableStack()
  t.teardown(() => parts.disposeAsync())
  if (!rest.directory) parts.defer(() => rmSync(rootDir, { recursive: true, force: true }))
  const connections = parts.use(new Connections({ files: [] }))
  const opened = parts.use(
    await openStore({
      directory: join(rootDir, 'cache'),
      sealingKey: storedKey(join(rootDir, 'seal.key')),
      report: () => undefined,
    }),
  )
  const store = wrap ? wrap(opened) : opened
  const cloud = parts.use(cloudOf(upstream.url, connections))
  const storeFailures: unknown[] = []
  const malformed: unknown[] = []
  const forward = forwarder(cloud, connections, () => ({ receivedBytes: 0 }))
  const reviews = new RecordedReviews(store, storedKey(join(rootDir, 'token.key')))
  const recorder = new Recorder(
    store,
    () => true,
    {
      countOf: () => ({ amount: 0 }),
      onStoreFailure: (cause) => storeFailures.push(cause),
      onMalformed: (cause) => malformed.push(cause),
      onEvent: () => undefined,
      onUnpacked: () => undefined,
    },
    reviews,
  )
  const upstreamParts: UpstreamPathParts = {
    forward: withAuthenticationOutcome(forward, async () => undefined),
    upgrade: upgrader(cloud, connections),
    recorder,
    store,
    onOutcome: () => undefined,
  }
  const handlers = upstreamHandlers(upstreamParts, () => undefined)
  const cachers = parts.use(
    new Cachers({
      store,
      upstream: handlers,
      recorder,
      comparesEvents: () => true,
      connectivity: () => ({
        online: () => cloud.online,
        changed: () => cloud.onlineChanged,
      }),
      leastMs: 1_800_000,
      mostBytes: 16 * 1024 ** 2,
      hooks: {
        onUpstreamWatches: () => undefined,
        onWatchers: () => undefined,
        onWatcherEnded: () => undefined,
        onFailed: () => undefined,
      },
    }),
  )
  const dispatch: DispatchParts = {
    ...upstreamParts,
    cloud,
    cachers,
    local: {
      store,
      nodeName,
      writes: new NodeWrites(() => Date.now()),
      watch: (exchange, info) => cachers.offline(exchange, info),
      reachOf: async () => 'own',
      review: (exchange, info, review) => reviews.last(exchange, info, review),
      kubelet: noKubelet,
    },
    onDiverted: () => undefined,
  }
  const keys = new ClusterKeys(join(rootDir, 'keys.json'))
  const handler = pipeline({
    callers: {
      nodeName,
      plainServed: true,
      anonymousLoopback: 'node',
      claims: new Claims(
        storedKey(join(rootDir, 'token.key')),
        parts.use(new TokenVerdicts(join(rootDir, 'proofs.json'), () => undefined)),
        keys,
      ),
      owners: new SocketOwners(),
      accepted: nothingAccepted,
      outage: noOutage,
    },
    withKnownAccount: withKnownAccount({
      keys,
      forward,
      cloud,
      onLearned: () => undefined,
      onFailure: () => undefined,
    }),
    stopping: new AbortController().signal,
    ownHosts: new Set(),
    metrics: createMetrics(),
    filtering: {
      ...(rest.filtering ?? filteringOf(filtersOf(filters))),
      ensureInputs,
    },
    admission: new Admission(
      () => maxRequestsInFlight,
      1024 ** 3,
      () => undefined,
    ),
    memoryLimitBytes: 1024 ** 3,
    dispatch,
    onUnexpected: () => undefined,
    onAnswer: () => undefined,
    open: new OpenList(),
    refused: new RefusedReads(),
    tracer: undefined,
  })
  const listener = await listen({
    at: [{ host: '127.0.0.1', port: 0 }],
    handler,
    maxConnections: 100,
    onBroken: () => undefined,
  })
  parts.defer(() => listener.close(0))
  return {
    store,
    cloud,
    storeFailures,
    malformed,
    as: (component, options) =>
      new Client({ url: `http://127.0.0.1:${listener.port}`, component, ...options }),
    stop: () => parts.disposeAsync(),
  }
}

function cloudOf(url: string, connections: Connections): Cloud {
  const rules = { intervalMs: 40, timeoutMs: 2_000, failedRetry: 1, healthyThreshold: 1 }
  return new Cloud({
    origins: [new URL(url).origin],
    build: (origin, onHealth) =>
      new Upstream(origin, readyzProbe(connections), rules, { onHealth }),
    mode: 'priority',
    onOnline: () => undefined,
  })
}
