import type { Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { stack } from '../exchange/stack.ts'
import type { FilterChain } from '../filter/chain.ts'
import type { CallerRules } from '../identity/caller.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import { dispatcher, type DispatchParts } from './dispatch.ts'
import { withEncoding } from './encoding.ts'
import { withLastResort, withRescue, type OnUnforeseen } from './failures.ts'
import { withFilters } from './filters.ts'
import { withDeadline, withInFlightLimit } from './limits.ts'
import { withIdentity, withRequestInfo } from './meaning.ts'
import { withOwnHost } from './own-host.ts'
import { refusalTrace, withTrace, type OnAnswer } from './trace.ts'

export interface PipelineParts {
  readonly callers: CallerRules
  readonly metrics: HubMetrics
  readonly filters: FilterChain
  readonly maxRequestsInFlight: number
  /** Aborts when the hub is told to stop. */
  readonly stopping: AbortSignal
  /** Names and addresses of this host by which callers may call it, besides those of loopback. */
  readonly ownHosts: ReadonlySet<string>
  readonly dispatch: DispatchParts
  readonly onUnforeseen: OnUnforeseen
  readonly onAnswer: OnAnswer
}

/** The whole data path, in the order in which a request travels. */
export function pipeline(parts: PipelineParts): Handler<Incoming, WireReply> {
  const refused = refusalTrace(parts.metrics, parts.onAnswer)
  return stack<Incoming, WireReply>()
    .through(withLastResort(parts.onUnforeseen, refused)) // whatever no one else caught becomes a Status in JSON
    .through(withOwnHost(parts.ownHosts)) // nobody is led here by a page or a name of somebody else's
    .through(withRequestInfo) // what is asked
    .through(withIdentity(parts.callers)) // by whom; the request becomes an exchange
    .through(withTrace(parts.metrics, parts.onAnswer)) // counted, whoever answers below
    .through(withEncoding) // objects become bytes here, in the form asked for
    .through(withRescue(parts.onUnforeseen)) // failures become a Status in that form
    .through(
      withInFlightLimit(parts.maxRequestsInFlight, () => parts.metrics.requestsRejected.add()),
    ) // shed before anything is queued
    .through(withDeadline(parts.stopping)) // a watch ends when its time is over or the hub stops, whoever answers it
    .through(withFilters(parts.filters)) // the same filters, whether cloud or cache answers
    .to(dispatcher(parts.dispatch))
}
