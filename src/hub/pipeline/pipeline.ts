import type { OpenList } from '../../base/open-list.ts'
import type { Exchange, Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import type { AuthenticationRules } from '../identity/caller.ts'
import { mayBeExplained } from '../identity/inspectors.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Tracer } from '../../tracing/span.ts'
import { withAuthentication } from './authentication.ts'
import { dispatcher, type DispatchParts } from './dispatch.ts'
import { withExplanation, refusalTrace, withTrace, type OnAnswer } from './trace.ts'
import { withEncoding } from './encoding.ts'
import { withLastResort, type OnUnexpected } from './failures.ts'
import type { FilterParts } from './filtered-watch.ts'
import { withFilters } from './filter-answers.ts'
import { withDeadline } from './deadline.ts'
import { isShort, type Admission } from './admission.ts'
import { SlowWatches } from './slow-watches.ts'
import { priorityLevels } from './priority-levels.ts'
import type { OpenRequest } from './open-requests.ts'
import type { RefusedReads } from '../boot/refused-reads.ts'
import { wholeRequestBody } from '../../http/exchange/request-body.ts'
import { isAnsweredByBody, isWatch } from '../../api/request/request-info.ts'

export interface PipelineParts {
  readonly callers: AuthenticationRules
  readonly metrics: HubMetrics
  readonly filtering: FilterParts
  readonly admission: Admission
  /** The memory that the process may use, about. */
  readonly memoryLimitBytes: number
  /** Aborts when the hub begins to stop. */
  readonly stopping: AbortSignal
  /** Names and addresses besides loopback's under which callers may call this host. */
  readonly ownHosts: ReadonlySet<string>
  readonly withKnownAccount: (next: Handler<Exchange>) => Handler<Exchange>
  readonly dispatch: DispatchParts
  readonly onUnexpected: OnUnexpected
  readonly onAnswer: OnAnswer
  readonly open: OpenList<OpenRequest>
  readonly refused: RefusedReads
  /** Absent: no traces are recorded. */
  readonly tracer: Tracer | undefined
}

/** The whole data path, in the order in which a request travels. */
export function pipeline(parts: PipelineParts): Handler<Incoming, WireReply> {
  const refused = refusalTrace(parts.metrics, parts.onAnswer)
  const { admission } = parts
  parts.metrics.onRead(() => showSeats(admission, parts.metrics))
  const slowWatches = new SlowWatches(parts.memoryLimitBytes, () =>
    parts.metrics.connectionsCut.add({ reason: 'memory' }),
  )
  return (
    stack<Incoming, WireReply>()
      // outermost: turns failures that no other layer caught into a Status in JSON
      .through(withLastResort(parts.onUnexpected, refused))
      // refuses foreign hosts, parses the URL, authenticates: the request becomes an exchange
      .through(withAuthentication(parts.callers, parts.ownHosts))
      // counts every answer, whichever layer below gives it, and begins the span of its trace
      .through(withTrace(parts))
      // explains an answer to root, and removes the field that requests it for all below
      .through(withExplanation((exchange) => mayBeExplained(exchange, parts.callers.owners)))
      // above all layers that hold bytes: bounds what watches hold for clients that do not read
      .through(ofLongRunning(slowWatches.bounding))
      // encodes objects, and failures as a Status, in the representation that the client accepts
      .through(withEncoding(parts.onUnexpected))
      // sheds by priority level before anything is queued, and before memory runs out
      .through(admission.admitting)
      // before anything is recorded or looked up: the identity is part of the key
      .through(parts.withKnownAccount)
      // reads the bodies that are part of a record's key; below the limits on bodies
      .through(withContent)
      // ends a watch at its deadline, when the hub stops or its caller is no longer known
      .through(ofWatches(withDeadline(parts.stopping)))
      // above API servers and cache alike, so that both answers are filtered the same
      .through(withFilters(parts.filtering))
      .to(dispatcher(parts.dispatch))
  )
}

/** A layer that these requests pass, and no others. */
const onlyFor =
  (isMeant: (exchange: Exchange) => boolean) =>
  <Out>(
    layer: (next: Handler<Exchange, Out>) => Handler<Exchange, Out>,
  ): ((next: Handler<Exchange, Out>) => Handler<Exchange, Out>) =>
  (next) => {
    const layered = layer(next)
    return (exchange) => (isMeant(exchange) ? layered : next)(exchange)
  }

const ofLongRunning = onlyFor((exchange) => !isShort(exchange))

export const ofWatches = onlyFor(({ info }) => isWatch(info))

function showSeats({ seats }: Admission, metrics: HubMetrics): void {
  for (const level of priorityLevels) {
    metrics.executingSeats.set({ priority_level: level }, seats.taken(level))
    metrics.limitSeats.set({ priority_level: level }, seats.limit(level))
  }
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
 * Layers over one handler, outermost first, in the order in which a request passes them. A layer
 * does not compile if the layers above do not supply the facts that it needs, or if it gets replies
 * that it cannot convert to its own.
 */
export interface Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  through<In, Out>(
    layer: (next: Handler<In, Out>) => Handler<InnerIn, InnerOut>,
  ): Stack<OuterIn, OuterOut, In, Out>
  to(handler: Handler<InnerIn, InnerOut>): Handler<OuterIn, OuterOut>
}

/** Handlers reject, and never throw synchronously. */
const rejecting =
  <In, Out>(handler: Handler<In, Out>): Handler<In, Out> =>
  (request) => {
    try {
      return handler(request)
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

/** Converts what each layer and the handler throw into rejections. */
function stack<In, Out>(): Stack<In, Out, In, Out> {
  return stackOver<In, Out, In, Out>((handler) => handler)
}

function stackOver<OuterIn, OuterOut, InnerIn, InnerOut>(
  wrap: (inner: Handler<InnerIn, InnerOut>) => Handler<OuterIn, OuterOut>,
): Stack<OuterIn, OuterOut, InnerIn, InnerOut> {
  return {
    through: (layer) => stackOver((handler) => wrap(rejecting(layer(handler)))),
    to: (handler) => wrap(rejecting(handler)),
  }
}
