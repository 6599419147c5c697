import type { BootVerdict, PodVerdict } from '../../boot/verdict.ts'
import type { HostNetworkReport, PodOnNode } from '../../filter/host-network/report.ts'
import type { CheckResult } from '../../../http/server/ops.ts'
import type { WatchGroup } from '../../pipeline/open-requests.ts'
import type { Availability } from '../../upstream/balance.ts'
import type { HealthStatus } from '../../upstream/upstream-health.ts'
import type { AnswerCount, LastHour, Minutes } from '../answer-record.ts'
import type { FilterStatus } from '../enabled-filters.ts'
import type { RequestEntry } from '../request-entry.ts'
import type { CertificateStatus } from './certificates.ts'

/** The first items of a list, and how many more there are. */
export interface Part<Item> {
  readonly items: readonly Item[]
  readonly omitted: number
}

/** A failed probe, and how often it was repeated in a row. Times are RFC 3339 in this document. */
export interface FailureStatus {
  readonly message: string
  readonly at: string
  readonly times: number
}

export interface UpstreamStatus {
  readonly origin: string
  readonly health: HealthStatus
  /** Since when. */
  readonly since: string
  /** In which order it is tried. */
  readonly availability: Availability
  readonly ejectedForSeconds?: number
  readonly refusesCredentials: boolean
  /** How long the last answered probe took. */
  readonly probeMs?: number
  readonly connections: number
  /** Why the last probe failed; absent where it succeeded. */
  readonly lastError?: string
  /** The latest first. */
  readonly failures: readonly FailureStatus[]
}

/** An `AnswerCount`, with its time as text. */
export interface ServedStatus extends Omit<AnswerCount, 'last'> {
  readonly last: Omit<AnswerCount['last'], 'at'> & { readonly at: string }
}

export interface CollectionStatus {
  readonly resource: string
  readonly apiVersion: string
  /** Empty: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string
  readonly labelSelector: string
  readonly fieldSelector: string
  /**
   * The identities that have read it, separated by commas: `node`, `hub`, a service account or the
   * keyed hash of a token.
   */
  readonly identity: string
  readonly representation: string
  readonly resourceVersion: string
  /** When an API server last confirmed it. */
  readonly confirmedAt: string
  readonly objects: number
  readonly bytes: number
  /** Clients' watches that its cacher serves. */
  readonly watchers: number
  /** Whether an upstream watch keeps it up to date. */
  readonly live: boolean
}

/** A `WatchGroup`, with its time as text. */
export interface WatchStatus extends Omit<WatchGroup, 'since'> {
  /** When the oldest began. */
  readonly since: string
}

/** A request without its end: as a `RequestEntry`, with what is known so far. */
export interface UnderWayStatus extends Pick<
  RequestEntry,
  'component' | 'caller' | 'account' | 'verb' | 'resource' | 'namespace' | 'name' | 'path' | 'bytes'
> {
  readonly since: string
  /** Absent: no answer has begun. */
  readonly source?: string
}

export interface LogLine {
  readonly at: string
  readonly level: string
  readonly message: string
  /** The other fields. */
  readonly fields: Readonly<Record<string, unknown>>
}

/**
 * The state of the hub, for `nodehub inspect` and the status page: names of API objects, and none
 * of their content; no secret. Lists are bounded.
 */
export interface HubStatus {
  readonly at: string
  readonly node: string
  readonly version: string
  readonly startedAt: string
  readonly ready: boolean
  readonly checks: readonly CheckResult[]
  /** The further lines of `/readyz?verbose`. */
  readonly notes: readonly string[]
  /** `online` is `null` until the first probes have decided. */
  readonly link: { readonly online: boolean | null; readonly since?: string }
  readonly upstreams: readonly UpstreamStatus[]
  /** Those of the kubelet first, those of people's programs last, and the latest first of each. */
  readonly served: Part<ServedStatus>
  readonly lastHour: Minutes
  /** How full the hub is: `connections` are of the port without TLS, memory and cache in bytes. */
  readonly saturation: ReturnType<LastHour['saturation']>
  /** `null` where the store cannot be read. */
  readonly collections: Part<CollectionStatus> | null
  /** In bytes, on the disk. */
  readonly cache: { readonly bytes: number; readonly limit: number }
  /** In bytes, of the process. */
  readonly memory: { readonly bytes: number; readonly limit: number }
  /** In the order of `served`. */
  readonly watches: Part<WatchStatus>
  /** Requests of clients but for watches, the oldest first. */
  readonly underWay: Part<UnderWayStatus>
  /** `null` where there is no verdict yet. */
  readonly boot:
    | (Omit<BootVerdict, 'pods'> & {
        /** Those that would not come back first. */
        readonly pods: Part<PodVerdict>
        readonly waiting: number
      })
    | null
  readonly filters: readonly FilterStatus[]
  /** `pods` is `null` where pods were never listed. */
  readonly hostNetwork: Omit<HostNetworkReport, 'pods'> & {
    /**
     * The propagated ones, those with clashing ports first, and in a host-network pool those that
     * keep a network of their own.
     */
    readonly pods: Part<PodOnNode> | null
  }
  readonly certificates: readonly CertificateStatus[]
  /** The oldest first. */
  readonly log: readonly LogLine[]
}
