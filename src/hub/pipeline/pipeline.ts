import type { Handler, Incoming, WireReply } from '../../http/exchange/exchange.ts'
import { stack } from '../../http/exchange/stack.ts'
import type { AuthenticationRules } from '../identity/caller.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { ClientForward } from './client-forward.ts'
import { dispatcher, type DispatchParts } from './dispatch.ts'
import { withConfirmedAccount } from './confirmed-account.ts'
import { withContent } from './content.ts'
import { withEncoding } from './encoding.ts'
import { withLastResort, withRescue, type OnUnforeseen } from './failures.ts'
import type { FilterParts } from './filter-parts.ts'
import { withFilters } from './filters.ts'
import { withInputs, type Learn } from './inputs.ts'
import { withDeadline } from './deadline.ts'
import { withLasting } from './lasting.ts'
import { withInFlightLimit, type OnShed } from './in-flight.ts'
import { SlowWatches } from './slow-watches.ts'
import { withIdentity, withRequestInfo } from './meaning.ts'
import { withOwnHost } from './own-host.ts'
import { priorityLevels, PriorityShares } from './priority-levels.ts'
import { withProof } from './proof.ts'
import { withTakenOver, type Noticing } from './taken-over.ts'
import { refusalTrace, withTrace, type OnAnswer } from './trace.ts'

export interface PipelineParts {
  readonly callers: AuthenticationRules
  readonly metrics: HubMetrics
  readonly learn: Learn
  readonly filtering: FilterParts
  readonly noticing?: Noticing
  readonly maxRequestsInFlight: number
  /** Roughly how much memory the process may use. */
  readonly memoryLimitBytes: number
  /** Aborts when the hub is told to stop. */
  readonly stopping: AbortSignal
  /** Names and addresses of this host by which callers may call it, besides those of loopback. */
  readonly ownHosts: ReadonlySet<string>
  readonly clients: Pick<ClientForward, 'heeding' | 'memory'>
  readonly dispatch: DispatchParts
  readonly onUnforeseen: OnUnforeseen
  readonly onAnswer: OnAnswer
}

/** The whole data path, in the order in which a request travels. */
export function pipeline(parts: PipelineParts): Handler<Incoming, WireReply> {
  const refused = refusalTrace(parts.metrics, parts.onAnswer)
  const onShed = countingShed(parts.metrics)
  const seats = new PriorityShares(() => parts.maxRequestsInFlight)
  parts.metrics.onRead(() => tellSeats(seats, parts.metrics))
  const { heeding, memory } = parts.clients
  const slowWatches = new SlowWatches(parts.memoryLimitBytes, () =>
    parts.metrics.connectionsCut.add({ reason: 'memory' }),
  )
  return (
    stack<Incoming, WireReply>()
      // outermost: turns what no other layer caught into a Status in JSON
      .through(withLastResort(parts.onUnforeseen, refused))
      // refuses a foreign Host or Origin before anything of the request is believed
      .through(withOwnHost(parts.ownHosts))
      // parses the URL: identity and limits depend on what is asked
      .through(withRequestInfo)
      // finds out who asks; the request becomes an exchange
      .through(withIdentity(parts.callers))
      // says to the listener who has proved to ask, before anything of the answer is made
      .through(withProof)
      // counts every answer, whichever layer below gives it
      .through(withTrace(parts.metrics, parts.onAnswer))
      // marks followed logs and the like, which a handover does not wait for
      .through(withLasting)
      // above all that hold bytes: what passes here is no longer counted as held
      .through(memory.sending)
      // bounds what all watches together hold for clients that do not read
      .through(slowWatches.bounding)
      // turns objects into bytes, in the form the client asked for
      .through(withEncoding)
      // turns failures into a Status in that form
      .through(withRescue(parts.onUnforeseen))
      // sheds by priority level, before anything is queued
      .through(withInFlightLimit(seats, onShed))
      // sheds before memory runs out
      .through(memory.shedding)
      // before anything is recorded or looked up: who asks is part of the key
      .through(withConfirmedAccount(heeding, parts.dispatch))
      // reads what keeping an answer, or finding a kept one, depends on; below the limits on bodies
      .through(withContent)
      // ends a watch when its time is over or the hub stops, whoever answers it
      .through(withDeadline(parts.stopping))
      // has asked for what filters need before they look
      .through(withInputs(parts.learn))
      // over cloud and cache alike, so that both answers are filtered the same
      .through(withFilters(parts.filtering))
      // finds what a hub before this one has filtered, where no filter acts here yet
      .through(withTakenOver(parts.noticing ?? (() => undefined)))
      .to(dispatcher(parts.dispatch))
  )
}

/** Counts what is shed, by reason and priority level. */
export const countingShed =
  ({ requestsRejected }: HubMetrics): OnShed =>
  (reason, level) =>
    requestsRejected.add({ reason, priority_level: level })

function tellSeats(seats: PriorityShares, metrics: HubMetrics): void {
  for (const level of priorityLevels) {
    metrics.executingSeats.set({ priority_level: level }, seats.taken(level))
    metrics.limitSeats.set({ priority_level: level }, seats.limit(level))
  }
}
