import { now } from '../../../base/clock.ts'
import { ownVersion } from '../../../base/own-version.ts'
import type { RecentLines } from '../../../base/recent-items.ts'
import { parseJson } from '../../../api/kube/json.ts'
import type { Connections } from '../../../http/client/connections.ts'
import { checkResults, isReady, type ReadinessCheck } from '../../../http/server/ops.ts'
import type { BootVerdict } from '../../boot/verdict.ts'
import type { Cacher } from '../../cache/cacher/cacher.ts'
import type { Cachers } from '../../cache/cacher/cachers.ts'
import { textOf } from '../../store/state/address.ts'
import type { PodOnNode } from './host-network-report.ts'
import { watchGroups, type OpenRequest } from '../../pipeline/open-requests.ts'
import { isForPerson } from '../../answers/replies.ts'
import type { LogStore, MeasuredCollection, StoreOverview } from '../../store/log/log-store.ts'
import type { Cloud } from '../../upstream/cloud.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { AnswerRecord } from '../answer-record.ts'
import type { Boot } from '../boot.ts'
import type { HubContext } from '../hub-context.ts'
import type { EnabledFilters } from '../enabled-filters.ts'
import type { HostNetwork } from '../host-network.ts'
import { memoryLimit } from '../memory.ts'
import type { CloudParts } from '../parts/cloud.ts'
import type { InputParts } from '../parts/filters.ts'
import { certificateStatuses } from './certificates.ts'
import { qualifiedResource, apiVersionOf } from '../../../api/kube/gvk.ts'
import { isWatch } from '../../../api/request/request-info.ts'
import { callerOf, objectOf } from '../../pipeline/trace.ts'
import { representationText } from '../../../api/request/representation.ts'

export interface StatusParts
  extends HubContext, Pick<CloudParts, 'cloud' | 'connections' | 'serving' | 'obtained'> {
  readonly store: LogStore
  readonly cachers: Pick<Cachers, 'all'>
  readonly answers: AnswerRecord
  readonly open: Iterable<OpenRequest>
  readonly boot: Boot
  readonly hostNetwork: HostNetwork
  readonly filters: EnabledFilters
  readonly inputs: InputParts
  readonly checks: readonly ReadinessCheck[]
  readonly verboseLines: () => readonly string[]
  /** Lines of JSON without secrets. */
  readonly recentLog: RecentLines | undefined
}

/** The most items of each list; a node has fewer. */
export const mostItems = 200

/**
 * The state of the hub, for `nodehub inspect` and the status page: names of API objects, and none
 * of their content; no secret. Lists are bounded; times are RFC 3339.
 */
export type HubStatus = Awaited<ReturnType<ReturnType<typeof statusReport>>>

/** Composes the status document of a hub, in time slices; does nothing until it is called. */
export function statusReport(parts: StatusParts) {
  const { config, cloud, connections, serving, store, cachers, answers, open } = parts
  const startedAt = time(now())
  return async () => {
    const { pods, ...hostNetwork } = await parts.hostNetwork.recent.get()
    const cacherOf = new Map(cachers.all.map((cacher) => [textOf(cacher.key), cacher]))
    return {
      at: time(now()),
      node: config.nodeName,
      version: ownVersion(),
      startedAt,
      ready: isReady(parts.checks),
      checks: checkResults(parts.checks),
      /** The further lines of `/readyz?verbose`. */
      notes: parts.verboseLines(),
      link: linkStatus(cloud),
      upstreams: cloud.upstreams.map((each) => upstreamStatus(each, connections)),
      /** Those of the kubelet first, those of people's programs last, the latest first of each. */
      served: first(byComponent(answers.counts), ({ last, ...count }) => ({
        ...count,
        last: { ...last, at: time(last.at) },
      })),
      lastHour: answers.hour.minutes(now()),
      /** How full the hub is: `connections` are of the port without TLS, the rest in bytes. */
      saturation: answers.hour.saturation(now()),
      collections: collectionStatuses(store.overview(mostItems), ({ key }) =>
        cacherOf.get(textOf(key)),
      ),
      /** In bytes, on the disk. */
      cache: { bytes: store.bytes, limit: config.cacheMaxBytes },
      /** In bytes, of the process. */
      memory: { bytes: process.memoryUsage.rss(), limit: memoryLimit(config) },
      /** In the order of `served`. */
      watches: first(byComponent(watchGroups(open)), (group) => ({
        ...group,
        labelSelector: shortened(group.labelSelector),
        fieldSelector: shortened(group.fieldSelector),
        /** When the oldest began. */
        since: time(group.since),
      })),
      /** Requests of clients but for watches, the oldest first. */
      underWay: first(
        [...open].filter(({ exchange }) => !isWatch(exchange.info)),
        underWay,
        mostUnderWay,
      ),
      boot: bootStatus(parts.boot.lastVerdict),
      filters: parts.filters.statuses(),
      hostNetwork: {
        ...hostNetwork,
        /**
         * The propagated ones, those with clashing ports first, and in a host-network pool those
         * that keep a network of their own. `null` where pods were never listed.
         */
        pods: pods
          ? first(
              pods
                .filter(({ network: shownOn }) =>
                  shownOn === 'pod'
                    ? hostNetwork.hostNetworkPool === true
                    : shownOn === 'propagated',
                )
                .toSorted((a, b) => order(a) - order(b)),
              same,
            )
          : null,
      },
      certificates: certificateStatuses(connections.credentials, serving.current, now(), {
        client: parts.obtained.fault,
        serving: parts.inputs.requested?.fault,
      }),
      /** The oldest first. */
      log: (parts.recentLog?.lines ?? []).map(logLine),
    }
  }
}

const time = (ms: number): string => new Date(ms).toISOString()

/** Stable: the kubelet's first, then those of other components by name, then people's. */
const byComponent = <T extends { readonly component: string }>(all: readonly T[]): readonly T[] =>
  all.toSorted(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      Number(a.component > b.component) - Number(a.component < b.component),
  )

const rankOf = (one: { readonly component: string }): number =>
  one.component === 'kubelet' ? 0 : isForPerson(one) ? 2 : 1

const order = ({ network, clashes }: PodOnNode): number => (network === 'pod' ? 1 : -clashes.length)

const same = <T>(item: T): T => item

/** The first items of a list, and how many more there are. */
const first = <From, To>(
  all: readonly From[],
  show: (item: From) => To,
  most = mostItems,
): { readonly items: readonly To[]; readonly omitted: number } => ({
  items: all.slice(0, most).map((item) => show(item)),
  omitted: Math.max(all.length - most, 0),
})

/** `online` is `null` until the first probes have decided. */
const linkStatus = ({ online, since }: Cloud): { online: boolean | null; since?: string } =>
  online === undefined ? { online: null } : { online, since: time(since) }

function upstreamStatus(upstream: Upstream, connections: Connections) {
  const { origin, health, healthSince, availability, probeMs, lastError, failures } = upstream
  return {
    origin,
    health,
    since: time(healthSince),
    /** In which order it is tried. */
    availability,
    ...(availability === 'ejected' && {
      ejectedForSeconds: Math.ceil(upstream.ejectedForMs / 1000),
    }),
    refusesCredentials: upstream.refusesCredentials,
    /** How long the last answered probe took. */
    ...(probeMs !== undefined && { probeMs: Math.round(probeMs * 10) / 10 }),
    connections: connections.open(origin),
    /** Why the last probe failed; absent where it succeeded. */
    ...(lastError && {
      lastError: lastError.message,
      remedy: remedyOf(origin, lastError.message),
    }),
    /** The latest first. */
    failures: failures.map((failure) => ({ ...failure, at: time(failure.at) })),
  }
}

/** What to do about an API server whose last probe failed. */
function remedyOf(origin: string, error: string): string {
  const remedy = causes.find(([cause]) => cause.test(error))?.[1]
  return `${remedy} To compare, here and at another node: curl -k ${origin}/healthz`
}

const causes: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'The host answers, and no API server listens at that port.'],
  [/ENOTFOUND|EAI_AGAIN/, 'The name is not resolved: look at /etc/resolv.conf.'],
  [
    /ECONNRESET|disconnected|hang up/,
    'Something on the way closes connections: a firewall, or a load balancer without API servers.',
  ],
  [/signed|certificate/i, 'Compare the CA files: nodehub inspect certificates.'],
  [/^/, 'If another node reaches it, the link of this one is at fault; else the API server is.'],
]

/** The last boot verdict, shortened: the pods that would not come back first. */
export function bootStatus(verdict: BootVerdict | undefined) {
  if (!verdict) return null
  const waiting = verdict.pods.filter(({ ready }) => !ready)
  const pods = [...waiting, ...verdict.pods.filter(({ ready }) => ready)]
  return { ...verdict, pods: first(pods, same), waiting: waiting.length }
}

/** A line of the hub's log, as the logger writes it. */
function logLine(text: string) {
  const { time: at, level, msg, ...fields } = (parseJson(text) ?? {}) as Record<string, unknown>
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
  return { at: textOf(at), level: textOf(level), message: textOf(msg), fields }
}

/** Enough to see which ones hang: a node has few at a time. */
export const mostUnderWay = 20

/** As a `RequestEntry`, with what is known so far; without `source` no answer has begun. */
function underWay({ exchange, since, source, sentBytes }: OpenRequest) {
  const { component, info } = exchange
  const { namespace, name } = objectOf(info)
  return {
    component,
    ...callerOf(exchange),
    verb: info.verb,
    resource: info.isResource ? qualifiedResource(info.gvr) : '',
    ...(namespace !== undefined && { namespace: shortened(namespace) }),
    ...(name !== undefined && { name: shortened(name) }),
    path: shortened(info.path),
    since: time(since),
    bytes: sentBytes,
    ...(source && { source }),
  }
}

/** The collections of a store, and how many watches `cacherOf` serves of each. */
export const collectionStatuses = (
  stored: StoreOverview,
  cacherOf: (collection: MeasuredCollection) => Cacher | undefined,
) => ({
  items: stored.collections.map((each) => collectionStatus(each, cacherOf(each))),
  omitted: stored.omitted,
})

const collectionStatus = (
  { key, readers, resourceVersion, confirmedAt, objects, bytes }: MeasuredCollection,
  cacher: Cacher | undefined,
) => ({
  resource: qualifiedResource(key.gvr),
  apiVersion: apiVersionOf(key.gvr),
  namespace: key.namespace ?? '',
  labelSelector: shortened(key.labelSelector),
  fieldSelector: shortened(key.fieldSelector),
  /** Who has read it: `node`, `hub`, a service account or the keyed hash of a token. */
  identity: readers.join(', '),
  representation: representationText(key.partition.representation),
  resourceVersion,
  confirmedAt: time(confirmedAt),
  objects,
  bytes,
  /** Clients' watches that its cacher serves. */
  watchers: cacher?.watchers ?? 0,
  /** Whether an upstream watch keeps it up to date. */
  live: cacher?.isLive ?? false,
})

/** Clients choose selectors, which may be as long as the head of a request. */
const mostSelector = 200

/** A selector for people. */
const shortened = (text: string): string =>
  text.length <= mostSelector ? text : `${text.slice(0, mostSelector)}…`
