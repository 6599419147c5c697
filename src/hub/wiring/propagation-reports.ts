import { hash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Broadcast } from '../../base/broadcast.ts'
import { after, elapsed, now } from '../../base/clock.ts'
import { timeText } from '../../certificates/validity.ts'
import { propagationCondition } from '../../api/kube/host-network-pod.ts'
import type { JsonObject } from '../../api/kube/json.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { pathOf, pods } from '../../api/kube/resources.ts'
import { ownComponent } from '../../api/request/component.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import type { Judgement } from '../filter/host-network/judgement.ts'
import type { PortLedger } from '../filter/host-network/ledger.ts'
import type { PodFacts } from '../filter/host-network/pod-facts.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { logUnexpected } from './log-failure.ts'
import { nodeRequests, type NodeRequests } from './node-request.ts'

interface ReportDependencies {
  readonly nodeName: string
  readonly ledger: Pick<PortLedger, 'judgementOf'>
  readonly cloud: Pick<Cloud, 'online'>
  /** Announced when the link goes or comes. */
  readonly onlineChanged: Broadcast<[boolean]>
  /** Reaches an API server, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  readonly log: Logger
}

const retryMs = 10_000
const deniedMs = 60 * 60_000

interface WaitingReport {
  readonly pod: PodFacts
  readonly judgement: Judgement
  /** On the monotonic clock. */
  readonly mayWriteAt: number
}

/** More than a node runs. */
const mostWaiting = 1_024

/**
 * Shows the verdicts of mode guarded in the cluster: as a condition of the pod, and as an Event
 * about it, each where the API server lets the node write it. It retries a failed write while the
 * verdict is the same.
 */
export class PropagationReports implements Disposable {
  readonly #dependencies: ReportDependencies
  readonly #closing = new AbortController()
  readonly #request: NodeRequests
  readonly #listening: readonly Disposable[]
  /** By the uid of the pod. */
  readonly #waiting = new Map<string, WaitingReport>()
  #timer: Disposable | undefined
  #isWriting = false
  #denied = false

  constructor(verdicts: Broadcast<[PodFacts, Judgement]>, dependencies: ReportDependencies) {
    const { dispatch, log } = dependencies
    this.#dependencies = dependencies
    this.#request = nodeRequests(dispatch, this.#closing.signal, logUnexpected(log))
    this.#listening = [
      verdicts.listen((pod, judgement) => this.#add(pod, judgement)),
      dependencies.onlineChanged.listen((online) => online && this.#soon()),
    ]
  }

  [Symbol.dispose](): void {
    this.#closing.abort()
    for (const each of this.#listening) each[Symbol.dispose]()
    this.#timer?.[Symbol.dispose]()
  }

  #add(pod: PodFacts, judgement: Judgement): void {
    if (this.#waiting.size >= mostWaiting) {
      const [oldest] = this.#waiting.keys()
      if (oldest !== undefined) this.#waiting.delete(oldest)
    }
    this.#waiting.set(pod.uid, { pod, judgement, mayWriteAt: 0 })
    this.#soon()
  }

  /** Not within the commit that brought a pod. */
  #soon(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = after(0, () => void this.#write())
  }

  async #write(): Promise<void> {
    this.#timer = undefined
    if (this.#isWriting || this.#closing.signal.aborted) return
    this.#isWriting = true
    for (const [uid, waiting] of this.#waiting) {
      const { cloud, ledger } = this.#dependencies
      if (cloud.online !== true) break
      const { judgement } = waiting
      const isCurrent = ledger.judgementOf(uid) === judgement
      if (isCurrent && elapsed() < waiting.mayWriteAt) continue
      const outcome = isCurrent ? await this.#report(waiting) : 'done'
      if (outcome === 'unreachable') break
      if (this.#waiting.get(uid) !== waiting) continue
      if (outcome === 'done') this.#waiting.delete(uid)
      if (outcome === 'denied')
        this.#waiting.set(uid, { ...waiting, mayWriteAt: elapsed() + deniedMs })
    }
    this.#isWriting = false
    if (this.#waiting.size > 0 && !this.#closing.signal.aborted)
      this.#timer ??= after(retryMs, () => void this.#write())
  }

  /**
   * 'failed': this one has to be tried again, others may succeed; 'denied': after a long time.
   * 'unreachable': none would succeed now.
   */
  async #report({
    pod,
    judgement,
  }: WaitingReport): Promise<'done' | 'failed' | 'denied' | 'unreachable'> {
    const { namespace, name } = pod
    const url = `${pathOf(pods, namespace, name)}/status`
    const type = 'application/strategic-merge-patch+json'
    const code = await this.#send('PATCH', url, type, conditionPatch(pod, judgement))
    if (code === 0 || code === 429) return 'unreachable'
    if (code >= 500) return 'failed'
    if (code === 403) this.#deniedCondition()
    const events = pathOf({ ...pods, resource: 'events' }, namespace, '').replace(/\/$/, '')
    const event = eventAbout(pod, judgement, this.#dependencies.nodeName)
    // Events are best effort; 409: an earlier hub has recorded the same.
    await this.#send('POST', events, mediaType('json'), event)
    return code === 403 ? 'denied' : 'done'
  }

  #deniedCondition(): void {
    if (this.#denied) return
    this.#denied = true
    this.#dependencies.log.warn(
      `the API server does not let the hub write the condition ${propagationCondition} of pods: the log and nodehub_host_network_verdicts_total show the verdicts`,
    )
  }

  #send(method: 'PATCH' | 'POST', url: string, type: string, body: JsonObject): Promise<number> {
    return this.#request({
      method,
      url,
      accept: mediaType('json'),
      component: ownComponent,
      content: { type, bytes: Buffer.from(JSON.stringify(body)) },
    })
  }
}

/** Conditions are merged by type; the uid keeps it off another pod of the same name. */
function conditionPatch(
  { uid, reported }: PodFacts,
  { verdict, reason, message }: Judgement,
): JsonObject {
  const type = propagationCondition
  const status = verdict === 'propagated' ? 'True' : 'False'
  const since = status === reported.status ? reported.lastTransitionTime : ''
  const lastTransitionTime = since === '' ? timeText(now()) : since
  const conditions = [{ type, status, reason, message, lastTransitionTime }]
  return { metadata: { uid }, status: { conditions } }
}

function eventAbout(
  { namespace, name, uid }: PodFacts,
  { verdict, reason, message }: Judgement,
  nodeName: string,
): JsonObject {
  const time = timeText(now())
  const digest = hash('sha256', JSON.stringify([uid, reason, message])).slice(0, 16)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, 220)}.${digest}`, namespace },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
    type: verdict === 'refused' ? 'Warning' : 'Normal',
    reason,
    message: `${propagationCondition}: ${message}`,
    source: { component: 'nodehub', host: nodeName },
    reportingComponent: 'nodehub',
    reportingInstance: nodeName,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
}
