import type { Exchange, Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { stack } from '../../http/exchange/stack.ts'
import { authenticate, type AuthenticationRules } from '../identity/caller.ts'
import { KubeletNames } from '../identity/kubelet-names.ts'
import { mayBeExplained } from '../identity/inspectors.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Tracer } from '../../tracing/span.ts'
import type { ClientForward } from './client-forward.ts'
import { dispatcher, type DispatchParts } from './dispatch.ts'
import { withConfirmedAccount } from './confirmed-account.ts'
import { withExplanation } from './explain.ts'
import { withEncoding } from './encoding.ts'
import { withLastResort, type OnUnexpected } from './failures.ts'
import type { FilterParts } from './resumed-watch.ts'
import { withFilters } from './filter-answers.ts'
import { withDeadline } from './deadline.ts'
import { withInFlightLimit, type OnShed } from './in-flight.ts'
import { SlowWatches } from './slow-watches.ts'
import { priorityLevels, PriorityShares } from './priority-levels.ts'
import { withPropagationDetection, type DetectPropagation } from './propagation-detection.ts'
import type { OpenWatches } from './open-watches.ts'
import type { RefusedReads } from '../boot/refused-reads.ts'
import { withSpan } from './request-span.ts'
import { refusalTrace, withTrace, type OnAnswer } from './trace.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'
import { isAnsweredByBody, parseRequestInfo } from '../../api/request/request-info.ts'
import { componentOf } from '../../api/request/component.ts'
import { representationsOf } from '../../api/request/representation.ts'
import { forbidden, StatusError } from '../../api/kube/status.ts'
import { rebindingFault } from '../../api/request/host-check.ts'
import { isProven } from '../../http/exchange/proven.ts'

interface PipelineParts {
  readonly callers: AuthenticationRules
  readonly metrics: HubMetrics
  readonly ensureInputs: EnsureInputs
  readonly filtering: FilterParts
  readonly detectPropagation: DetectPropagation
  readonly maxRequestsInFlight: number
  /** The memory that the process may use, about. */
  readonly memoryLimitBytes: number
  /** Aborts when the hub begins to stop. */
  readonly stopping: AbortSignal
  /** Names and addresses besides loopback's under which callers may call this host. */
  readonly ownHosts: ReadonlySet<string>
  readonly clients: Pick<ClientForward, 'authentication' | 'memory'>
  readonly dispatch: DispatchParts
  readonly onUnexpected: OnUnexpected
  readonly onAnswer: OnAnswer
  readonly watches: OpenWatches
  readonly refused: RefusedReads
  /** Absent: no traces are recorded. */
  readonly tracer: Tracer | undefined
}

/** The whole data path, in the order in which a request travels. */
export function pipeline(parts: PipelineParts): Handler<Incoming, WireReply> {
  const refused = refusalTrace(parts.metrics, parts.onAnswer)
  const onShed = countingShed(parts.metrics)
  const seats = new PriorityShares(() => parts.maxRequestsInFlight)
  parts.metrics.onRead(() => showSeats(seats, parts.metrics))
  const { authentication, memory } = parts.clients
  const slowWatches = new SlowWatches(parts.memoryLimitBytes, () =>
    parts.metrics.connectionsCut.add({ reason: 'memory' }),
  )
  return (
    stack<Incoming, WireReply>()
      // outermost: turns failures that no other layer caught into a Status in JSON
      .through(withLastResort(parts.onUnexpected, refused))
      // refuses a foreign Host or Origin before any of the request is trusted
      .through(withOwnHost(parts.ownHosts))
      // parses the URL and authenticates the caller: the request becomes an exchange
      .through(withIdentity(parts.callers))
      // reports the proven caller to the listener, before any of the answer exists
      .through(withProvenCaller)
      // begins the span of the trace, which all below may extend
      .through(withSpan(parts.tracer))
      // counts every answer, whichever layer below gives it
      .through(withTrace(parts))
      // explains an answer to root, and removes the field that requests it for all below
      .through(withExplanation((exchange) => mayBeExplained(exchange, parts.callers.owners)))
      // above all layers that hold bytes: bytes that pass here are no longer held
      .through(memory.sending)
      // bounds what all watches hold for clients that do not read
      .through(slowWatches.bounding)
      // encodes objects, and failures as a Status, in the representation that the client accepts
      .through(withEncoding(parts.onUnexpected))
      // sheds by priority level, before anything is queued
      .through(withInFlightLimit(seats, onShed))
      // sheds before memory runs out
      .through(memory.shedding)
      // before anything is recorded or looked up: the identity is part of the key
      .through(withConfirmedAccount(authentication, parts.dispatch))
      // reads the bodies that are part of a record's key; below the limits on bodies
      .through(withContent)
      // ends a watch at its deadline, when the hub stops or its caller is no longer known
      .through(withDeadline(parts.stopping))
      // requests the inputs of filters before these act
      .through(withFilterInputs(parts.ensureInputs))
      // above API servers and cache alike, so that both answers are filtered the same
      .through(withFilters(parts.filtering))
      // detects pods that another hub has filtered, while no filter acts here
      .through(withPropagationDetection(parts.detectPropagation))
      .to(dispatcher(parts.dispatch))
  )
}

/** Counts shed requests, by reason and priority level. */
export const countingShed =
  ({ requestsRejected }: HubMetrics): OnShed =>
  (reason, level) =>
    requestsRejected.add({ reason, priority_level: level })

function showSeats(seats: PriorityShares, metrics: HubMetrics): void {
  for (const level of priorityLevels) {
    metrics.executingSeats.set({ priority_level: level }, seats.taken(level))
    metrics.limitSeats.set({ priority_level: level }, seats.limit(level))
  }
}

/**
 * Refuses requests on loopback with a foreign Host or Origin: a web page or a rebound DNS name
 * directed a browser here.
 */
export function withOwnHost(ownHosts: ReadonlySet<string>) {
  return (next: Handler<Incoming, WireReply>): Handler<Incoming, WireReply> => {
    const familiar = new Set<string>()
    return (incoming) => {
      const { headers, peer } = incoming
      const { localAddress } = peer
      const [host, origin] = [headers.get('host'), headers.get('origin')]
      const pair =
        host === undefined || origin !== undefined ? undefined : `${localAddress} ${host}`
      if (pair !== undefined && familiar.has(pair)) return next(incoming)
      const strange = rebindingFault(ownHosts, { localAddress, host, origin })
      if (strange !== undefined) throw new StatusError(forbidden(strange))
      if (pair !== undefined && familiar.size < mostFamiliar) familiar.add(pair)
      return next(incoming)
    }
  }
}

/** The number of address and Host pairs remembered: programs repeat a few. */
const mostFamiliar = 64

/**
 * Parses the URL, authenticates the caller, and determines its component and the representations
 * that it accepts: the request becomes an exchange.
 */
function withIdentity(rules: AuthenticationRules) {
  const kubelets = new KubeletNames(rules.nodeName)
  return (next: Handler<Exchange, WireReply>): Handler<Incoming, WireReply> =>
    async (request) => {
      const info = parseRequestInfo(request.method, request.url)
      const caller = await authenticate(request, rules)
      const name = componentOf(request.headers.get('user-agent'))
      const isNode = caller.credential === 'node'
      return next({
        ...request,
        ...caller,
        info,
        component: isNode ? kubelets.componentOf(name, info) : name,
        representations: representationsOf(request.headers.get('accept'), info.query),
      })
    }
}

/**
 * Reports the proven caller to the listener: before the request is passed on or, where an API
 * server's answer proves the token, before that answer is sent; or where it has upgraded the
 * connection. Layers below may have found by then that the token is a service account's: the
 * account counts, so that connections with many tokens of one account count as one caller. If the
 * answer disproves the caller, that is reported as well.
 */
export function withProvenCaller(next: Handler<Exchange, WireReply>): Handler<Exchange, WireReply> {
  return (exchange) => {
    const wasProven = report(exchange)
    if (wasProven && !exchange.claim) return next(exchange)
    const reportOutcome = (): void => {
      if (!wasProven) report(exchange)
      else if (!isProven(exchange)) exchange.onDisproven?.()
    }
    return next(exchange).then((reply) => {
      const outcome = reply.kind === 'upgrade' ? reply.finalStatus : undefined
      if (outcome) void outcome.then(reportOutcome)
      else reportOutcome()
      return reply
    })
  }
}

function report(exchange: Exchange): boolean {
  if (!isProven(exchange)) return false
  exchange.onProven?.(exchange.claim?.identity() ?? exchange.identity)
  return true
}

/** A larger body, or one of unknown length, passes unread, and its answer is not recorded. */
export const contentBytes = 64 * 1024

/** Reads the bodies of token requests and reviews, which are part of the key of their answers. */
function withContent(next: Handler<Exchange>): Handler<Exchange> {
  return (exchange) => {
    const { body, headers, info } = exchange
    if (!isAnsweredByBody(info) || !body || exchange.upgrade) return next(exchange)
    const length = Number(headers.get('content-length') ?? Infinity)
    if (!(length <= contentBytes)) return next(exchange)
    return wholeRequestBody(body, contentBytes).then((content) => next({ ...exchange, content }))
  }
}

/**
 * Requests the inputs that the filters of an exchange need. `undefined`: there is nothing to wait
 * for; otherwise resolves soon, whether they are known or not.
 */
export type EnsureInputs = (exchange: Exchange) => Promise<void> | undefined

/**
 * Lets a request wait briefly for filter inputs that were never known: an earlier answer would
 * change at once.
 */
const withFilterInputs =
  (learn: EnsureInputs) =>
  (next: Handler<Exchange>): Handler<Exchange> =>
  (exchange) => {
    const learning = learn(exchange)
    return learning ? learning.then(() => next(exchange)) : next(exchange)
  }
