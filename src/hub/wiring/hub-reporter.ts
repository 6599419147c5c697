import type { Logger } from 'pino'
import { ownVersion } from '../../base/own-version.ts'
import { elapsed, every, jitter, now } from '../../base/clock.ts'
import { hubReportPatch } from '../../api/kube/hub-report.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { nodes, pathOf } from '../../api/kube/resources.ts'
import { ownComponent } from '../../api/request/component.ts'
import type { LiveConfig } from '../../config/hub-config.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import type { AnswerLine } from '../pipeline/trace.ts'
import { newestSchema } from '../store/sqlite/schema.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { isRefusal } from './answer-log.ts'
import { logUnexpected } from './log-failure.ts'
import { nodeRequests, type NodeRequests } from './node-request.ts'

interface ReporterDependencies {
  readonly nodeName: string
  readonly live: () => LiveConfig
  readonly cloud: Cloud
  /** Reaches an API server, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  /** Names of failing readiness checks. */
  readonly failing: () => readonly string[]
  readonly log: Logger
}

const checkMs = 5_000
/** A fleet's API servers get at most so many writes of each hub. */
const betweenWritesMs = 30_000
const deniedMs = 60 * 60_000
const refusedForMs = 60 * 60_000

/** Clients choose their names, and an annotation is not the place for many. */
const mostRefused = 8

/**
 * Writes the report of this hub to its Node: when the hub has started, and when the report has
 * changed, with a pause after each write. It has no heartbeat: the Node's own conditions show
 * whether its kubelet still reaches the cluster through the hub.
 */
export class HubReporter implements Disposable {
  readonly #dependencies: ReporterDependencies
  readonly #closing = new AbortController()
  readonly #request: NodeRequests
  #checking: Disposable | undefined
  readonly #started = new Date(now()).toISOString()
  /** When each kind was refused last, by the clock of `elapsed`. */
  readonly #refused = new Map<string, number>()
  #written = ''
  #isWriting = false
  #mayWriteAt = 0
  #denied = false

  constructor(dependencies: ReporterDependencies) {
    const { dispatch, log } = dependencies
    this.#dependencies = dependencies
    this.#request = nodeRequests(dispatch, this.#closing.signal, logUnexpected(log))
  }

  /** To be called once the hub serves: before, it may still fail to start. */
  begin(): void {
    this.#checking = every(checkMs, () => void this.#write())
    void this.#dependencies.cloud.onlineKnown().then(() => this.#write())
  }

  [Symbol.dispose](): void {
    this.#closing.abort()
    this.#checking?.[Symbol.dispose]()
  }

  /** Takes note of an answer: those by which the hub refused are reported. */
  note(line: Pick<AnswerLine, 'code' | 'source' | 'component'>): void {
    if (!isRefusal(line)) return
    const component = /^[\w.-]{1,40}$/.test(line.component) ? line.component : 'other'
    const kind = `${line.code} ${component}`
    if (this.#refused.has(kind) || this.#refused.size < mostRefused)
      this.#refused.set(kind, elapsed())
  }

  async #write(): Promise<void> {
    const { live, cloud, nodeName, log } = this.#dependencies
    const isDue = live().boot.report && cloud.online === true && elapsed() >= this.#mayWriteAt
    if (!isDue || this.#isWriting || this.#closing.signal.aborted) return
    const text = JSON.stringify(hubReportPatch(this.#report()))
    if (text === this.#written) return
    this.#isWriting = true
    const code = await this.#request({
      method: 'PATCH',
      url: `${pathOf(nodes, '', nodeName)}/status`,
      accept: mediaType('json'),
      component: ownComponent,
      content: { type: 'application/merge-patch+json', bytes: Buffer.from(text) },
    })
    this.#isWriting = false
    if (code === 200) {
      this.#written = text
      this.#denied = false
    }
    this.#mayWriteAt = elapsed() + (code === 403 ? deniedMs : betweenWritesMs) * jitter(0.9, 1.1)
    if (code !== 403 || this.#denied) return
    this.#denied = true
    log.warn('the API server does not let the hub write its report to the Node')
  }

  #report() {
    for (const [kind, at] of this.#refused)
      if (elapsed() - at > refusedForMs) this.#refused.delete(kind)
    return {
      version: ownVersion(),
      schema: newestSchema,
      started: this.#started,
      failing: this.#dependencies.failing(),
      refused: [...this.#refused.keys()].toSorted(),
    }
  }
}
