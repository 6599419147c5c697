import type { Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { stack } from '../exchange/stack.ts'
import type { FilterChain } from '../filter/chain.ts'
import type { CallerRules } from '../identity/caller.ts'
import type { HubMetrics } from '../metrics/metrics.ts'
import type { Forward } from '../remote/forward.ts'
import { dispatcher, type DispatchParts } from './dispatch.ts'
import { withEncoding } from './encoding.ts'
import { withLastResort, withRescue, type OnUnforeseen } from './failures.ts'
import { withFilters } from './filters.ts'
import { withDeadline } from './deadline.ts'
import { heeding, type HeedingOptions } from './heeding.ts'
import { withLasting } from './lasting.ts'
import { withInFlightLimit, type OnShed } from './in-flight.ts'
import { MemoryBudget } from './memory.ts'
import { SlowWatches } from './slow-watches.ts'
import { withIdentity, withRequestInfo } from './meaning.ts'
import { withOwnHost } from './own-host.ts'
import { refusalTrace, withTrace, type OnAnswer } from './trace.ts'

export interface PipelineParts {
  readonly callers: CallerRules
  readonly metrics: HubMetrics
  readonly filters: FilterChain
  readonly maxRequestsInFlight: number
  /** What the process may hold, about. */
  readonly memoryLimitBytes: number
  /** Aborts when the hub is told to stop. */
  readonly stopping: AbortSignal
  /** Names and addresses of this host by which callers may call it, besides those of loopback. */
  readonly ownHosts: ReadonlySet<string>
  /** How the keys of service accounts' tokens are come by. */
  readonly learning: HeedingOptions
  readonly dispatch: DispatchParts
  readonly onUnforeseen: OnUnforeseen
  readonly onAnswer: OnAnswer
}

/** The whole data path, in the order in which a request travels. */
export function pipeline(parts: PipelineParts): Handler<Incoming, WireReply> {
  const refused = refusalTrace(parts.metrics, parts.onAnswer)
  const onShed: OnShed = (reason) => parts.metrics.requestsRejected.add({ reason })
  const memory = new MemoryBudget(parts.memoryLimitBytes, onShed)
  const slowWatches = new SlowWatches(parts.memoryLimitBytes, () =>
    parts.metrics.connectionsCut.add({ reason: 'memory' }),
  )
  const heeded = heeding(parts.dispatch.forward, parts.learning) // what answers say of who asked
  const forward = weighed(heeded, memory)
  return stack<Incoming, WireReply>()
    .through(withLastResort(parts.onUnforeseen, refused)) // whatever no one else caught becomes a Status in JSON
    .through(withOwnHost(parts.ownHosts)) // nobody is led here by a page or a name of somebody else's
    .through(withRequestInfo) // what is asked
    .through(withIdentity(parts.callers)) // by whom; the request becomes an exchange
    .through(withTrace(parts.metrics, parts.onAnswer)) // counted, whoever answers below
    .through(withLasting) // what a hub that hands over need not wait for is marked
    .through(memory.sending) // what has gone to the client is held no longer
    .through(slowWatches.bounding) // what clients leave lying of watches is bounded, together
    .through(withEncoding) // objects become bytes here, in the form asked for
    .through(withRescue(parts.onUnforeseen)) // failures become a Status in that form
    .through(withInFlightLimit(() => parts.maxRequestsInFlight, onShed)) // shed before anything is queued
    .through(memory.shedding) // and before memory goes
    .through(withDeadline(parts.stopping)) // a watch ends when its time is over or the hub stops, whoever answers it
    .through(withFilters(parts.filters)) // the same filters, whether cloud or cache answers
    .to(dispatcher({ ...parts.dispatch, forward }))
}

/** What comes from the cloud is held from then on. */
const weighed =
  (forward: Forward, memory: MemoryBudget): Forward =>
  async (exchange, options) => {
    const reply = await forward(exchange, options)
    return { ...reply, source: memory.received(exchange.id, reply.source) }
  }
