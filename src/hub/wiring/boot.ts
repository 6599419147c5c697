import { elapsed, every, jitter, latest, now } from '../../base/clock.ts'
import { ownVersion } from '../../base/own-version.ts'
import type { HubReport } from '../../api/kube/hub-report.ts'
import {
  conditionState,
  nextReport,
  reportIn,
  reportPatch,
  type NodeReport,
} from '../boot/condition.ts'
import { kubeletCache, type KubeletCache } from '../boot/kubelet-cache.ts'
import { onSiteDocuments, schemasOf } from '../boot/on-site-documents.ts'
import { NodePods } from '../boot/needs.ts'
import { Refresher, type RefreshOutcome, type RefreshRequest } from '../boot/refresh.ts'
import type { RefusedRead } from '../boot/refused-reads.ts'
import { bootVerdict, podReasons, type BootVerdict } from '../boot/verdict.ts'
import { isForPerson } from '../answers/replies.ts'
import { cursorOf } from '../../api/codec/cursor.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { mediaType } from '../../api/kube/media-type.ts'
import { nodes, pathOf } from '../../api/kube/resources.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { ownComponent } from '../../api/request/component.ts'
import type { ObjectStore } from '../store/store.ts'
import type { HubContext } from './hub-context.ts'
import { logUnexpected } from './log-failure.ts'
import { nodeRequests, type NodeRequests } from './node-request.ts'

interface BootDependencies extends HubContext {
  readonly store: ObjectStore
  /** The reads that recorded components are refused at present. */
  readonly refused: () => readonly RefusedRead[]
  /** The readiness checks that fail at present, each with its fault. */
  readonly failing: () => readonly string[]
  readonly cloud: Cloud
  /** Reads from an API server or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
}

type Outcome = 'ready' | 'unread' | 'not ready'

const unreadText = 'nothing is recorded yet'

/** How often the hub makes a boot verdict for the log and the node's condition. */
export const judgeIntervalMs = 10_000
const minJudgeIntervalMs = 500

const deniedMs = 60 * 60_000
const failedMs = 60_000

/**
 * Keeps the records fresh that the node needs to boot, and decides whether it would boot offline.
 */
export class Boot implements Disposable {
  readonly #dependencies: BootDependencies
  readonly #pods: NodePods
  readonly #refresher: Refresher
  readonly #request: NodeRequests
  readonly #closing = new AbortController()
  readonly #judging: Disposable
  /** The last boot verdict. */
  #verdict: BootVerdict | undefined
  #isJudging = false
  /** Of the last verdict, and of the last one in the log. */
  #outcome: Outcome | undefined
  #logged: Outcome | undefined
  #written: NodeReport | undefined
  #writing = false
  /** By the clock of `elapsed`: the node's own may be set back by years. */
  #mayWriteAt = 0
  #denied = false

  constructor(dependencies: BootDependencies) {
    const { live, cloud, dispatch, log } = dependencies
    const { nodeName } = dependencies.config
    this.#dependencies = dependencies
    this.#pods = new NodePods(nodeName)
    this.#request = nodeRequests(dispatch, this.#closing.signal, logUnexpected(log))
    const schemas = schemasOf()
    this.#refresher = new Refresher({
      pods: this.#pods,
      cache: () => this.#knowledge(),
      documents: (cache) => [...onSiteDocuments, ...schemas(cache)],
      request: (question) => this.#ask(question),
      online: () => cloud.online === true,
      everyMs: () => live().boot.refreshMs,
      onFailure: (err) => log.error({ err }, 'cannot refresh what the node needs to boot'),
      onForbidden: ({ gvr, namespace, name }) =>
        log.warn(
          { resource: gvr.resource, namespace, name },
          'the API server does not let this node read what one of its pods refers to',
        ),
    })
    this.#judging = every(judgeInterval(live().boot.refreshMs), () => void this.#judge())
    void this.verdict().catch((err: unknown) => this.#failed(err))
  }

  /** To be called when an API server can be reached again. */
  cameOnline(): void {
    this.#refresher.cameOnline()
  }

  /**
   * Makes, in time slices, a verdict on a reboot without a link; metrics and readiness show it
   * until the next one.
   */
  async verdict(): Promise<BootVerdict> {
    const { config, live, refused, cloud, metrics } = this.#dependencies
    const needs = await this.#pods.needs(this.#knowledge())
    const { boot } = live()
    const present = now()
    // Offline all records grow old, and no refresh is possible.
    const refreshes = cloud.online === true && boot.refreshMs > 0
    this.#verdict = bootVerdict({
      nodeName: config.nodeName,
      needs,
      now: present,
      lastRefresh: (of) => this.#refresher.lastResult(of),
      oldBefore: refreshes ? latest(present - 3 * boot.refreshMs, cloud.since) : 0,
      // A person's kubectl is no part of the node.
      refused: refused().filter((each) => !isForPerson(each)),
    })
    showVerdict(metrics, this.#verdict)
    return this.#verdict
  }

  /** The last verdict; `undefined`: there is none yet. */
  get lastVerdict(): BootVerdict | undefined {
    return this.#verdict
  }

  /** The last verdict, for `/readyz?verbose`: it does not affect readiness. */
  verboseLine(): string {
    if (!this.#verdict) return '[ ]boot no verdict yet'
    const { ready, node } = this.#verdict
    const what = node.unread ? unreadText : conditionState(this.#verdict).message
    return `[${ready ? '+' : ' '}]boot ${what}`
  }

  [Symbol.dispose](): void {
    this.#closing.abort()
    this.#judging[Symbol.dispose]()
    this.#refresher[Symbol.dispose]()
  }

  #knowledge(): KubeletCache {
    const { config, store } = this.#dependencies
    return kubeletCache(store, config.nodeName)
  }

  async #ask({ url, accept }: RefreshRequest): Promise<RefreshOutcome> {
    const code = await this.#request({ method: 'GET', url, accept, component: 'kubelet' })
    if (code === 200) return 'confirmed'
    if (code === 404) return 'absent'
    return code === 403 ? 'forbidden' : 'failed'
  }

  async #judge(): Promise<void> {
    if (this.#isJudging) return
    this.#isJudging = true
    try {
      const verdict = await this.verdict()
      if (this.#closing.signal.aborted) return
      this.#logChange(verdict)
      void this.#report(verdict)
    } catch (err) {
      this.#failed(err)
    } finally {
      this.#isJudging = false
    }
  }

  #failed(err: unknown): void {
    if (this.#closing.signal.aborted) return
    this.#dependencies.log.error({ err }, 'cannot make the boot verdict')
  }

  /** A change is logged once two verdicts have it: a new pod's objects take a moment. */
  #logChange({ ready, node, pods }: BootVerdict): void {
    const { log } = this.#dependencies
    const outcome = ready ? 'ready' : node.unread ? 'unread' : 'not ready'
    const isSettled = outcome === this.#outcome
    this.#outcome = outcome
    if (!isSettled || outcome === this.#logged) return
    this.#logged = outcome
    const counts = { pods: pods.length, waiting: pods.filter((pod) => !pod.ready).length }
    if (ready) log.info(counts, 'the node would come back without a link')
    else if (node.unread)
      log.info(
        'nothing is recorded yet: the kubelet has not read its node and its pods through the hub',
      )
    else log.warn(counts, 'the node would not come back without a link: see nodehub inspect boot')
  }

  /** Writes condition and annotation to the Node. */
  async #report(verdict: BootVerdict): Promise<void> {
    const { config, live, cloud, failing, log } = this.#dependencies
    if (!live().boot.condition || this.#writing || cloud.online !== true) return
    if (elapsed() < this.#mayWriteAt) return
    const report: HubReport = {
      version: ownVersion(),
      onlineSince: new Date(cloud.since).toISOString(),
      failing: failing(),
    }
    const saying = conditionState(verdict)
    const next = nextReport(saying, JSON.stringify(report), this.#before(), now())
    if (!next) return
    this.#writing = true
    const code = await this.#request({
      method: 'PATCH',
      url: `${pathOf(nodes, '', config.nodeName)}/status`,
      accept: mediaType('json'),
      component: ownComponent,
      content: {
        type: 'application/strategic-merge-patch+json',
        bytes: Buffer.from(JSON.stringify(reportPatch(next))),
      },
    })
    this.#writing = false
    if (code === 200) {
      this.#written = next
      this.#denied = false
      return
    }
    this.#mayWriteAt = elapsed() + (code === 403 ? deniedMs : failedMs) * jitter(0.9, 1.1)
    if (code !== 403 || this.#denied) return
    this.#denied = true
    log.warn(
      'the API server does not let the hub write the condition OfflineReady: nodehub manifests --part rbac has the right',
    )
  }

  /** What the node has: as the hub wrote it last, or as the cache has it from an earlier hub. */
  #before(): NodeReport | undefined {
    if (this.#written) return this.#written
    const { nodeName } = this.#dependencies.config
    const found = this.#knowledge().object(nodes, '', nodeName)
    if (typeof found !== 'object') return undefined
    return reportIn(cursorOf(found.encoding, found.gvk, found.object))
  }
}

/** More often where records are refreshed more often. */
const judgeInterval = (refreshMs: number): number =>
  refreshMs === 0
    ? judgeIntervalMs
    : Math.min(judgeIntervalMs, Math.max(refreshMs / 10, minJudgeIntervalMs))

function showVerdict(metrics: HubMetrics, { ready, pods }: BootVerdict): void {
  metrics.bootReady.set(ready ? 1 : 0)
  for (const reason of podReasons) {
    const concerned = pods.filter(({ problems }) => problems.some((each) => each.reason === reason))
    metrics.bootPodsNotReady.set({ reason }, concerned.length)
  }
}
