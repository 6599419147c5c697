import { parseJson } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { Throttled } from '../../base/throttled.ts'
import type { BodyReply, Handler, Incoming, WireReply } from '../exchange/exchange.ts'
import { wholeRequestBody } from '../exchange/request-body.ts'
import { parseBootstrapToken, type BootstrapToken } from '../../config/bootstrap.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import { StatusError } from '../../api/kube/status.ts'
import { isLoopback, rebindingFault } from '../../api/request/host-check.ts'
import { inspector, type Inspections } from './inspections.ts'
import { listen, type Listener } from './listener.ts'
import type { ListenTarget } from './listening.ts'
import { opsReply } from './ops-reply.ts'
import { pageReply, type PageFile } from './status-page.ts'

/** A readiness check. `check` returns what is wrong, or `undefined`. */
export interface ReadinessCheck {
  readonly name: string
  readonly check: () => string | undefined
  /** Whether a failure makes the hub unready, or is only reported; absent: it does. */
  readonly isRequired?: () => boolean
  /** For people: what to do where it fails; absent: the fault says it. */
  readonly remedy?: () => string | undefined
}

/** The result of a readiness check. */
export interface CheckResult {
  readonly name: string
  /** Whether a failure makes the hub unready now. */
  readonly required: boolean
  /** What is wrong; absent: nothing. */
  readonly fault?: string
  /** What to do about the fault. */
  readonly remedy?: string
}

/** Takes a new bootstrap token at `/v1/token`, as yurthub does. */
export interface JoinTokenIntake {
  /** Whether a caller, which is on loopback, may hand one over. */
  readonly authorize: (caller: Incoming) => Promise<boolean>
  /** Uses the token from now on. Resolves with false where the hub uses none. */
  readonly replace: (token: BootstrapToken) => Promise<boolean>
}

export interface OpsOptions {
  readonly at: readonly ListenTarget[]
  readonly metrics: Pick<HubMetrics, 'exposition' | 'connectionsCut'>
  /** Names and addresses of this host that callers may use besides those of loopback. */
  readonly ownHosts: ReadonlySet<string>
  readonly checks: readonly ReadinessCheck[]
  /**
   * Further lines for `?verbose`, which do not affect readiness: whether the hub is offline, and
   * since when. Must be cheap.
   */
  readonly verboseLines: () => readonly string[]
  readonly inspections?: Inspections
  /** The files of the status page by their paths. */
  readonly page?: ReadonlyMap<string, PageFile>
  readonly joinToken?: JoinTokenIntake
  /** Called with the cause when a connection could not be accepted, or an answer broke off. */
  readonly onBroken?: (cause: unknown) => void
  /** Called for each request that is answered 401 or 403. */
  readonly onRefused?: (incoming: Incoming, reply: BodyReply) => void
}

/**
 * One more closes another (see `ConnectionLimit`): a kubelet whose probe gets no connection would
 * restart the hub.
 */
export const mostConnections = 64

/**
 * Probes and scrapers send no request before the answer to the last one; the next may arrive just
 * before the last is complete.
 */
export const mostPipelined = 4

/** Answers here are short, and their clients wait for them. */
export const stalledMs = 10_000

/** Scrapers come less often. */
export const leastExpositionMs = 1_000

/**
 * yurthub's exact answer: `yurtadm` compares the whole body (pkg/yurtadm/util/yurthub/yurthub.go).
 */
const yurthubOk = 'OK'

/**
 * Serves livez, readyz, healthz, yurthub's paths for them, metrics and inspections. Of API objects
 * it reveals only names.
 */
export function listenOps(options: OpsOptions): Promise<Listener> {
  return listen({
    ...options,
    handler: reporting(opsHandler(options), options),
    maxConnections: mostConnections,
    pipelined: mostPipelined,
    stalledMs,
    onBroken: options.onBroken ?? (() => undefined),
    onCut: (reason) => options.metrics.connectionsCut.add({ reason }),
  })
}

/** Answers failures, and reports refusals. */
const reporting =
  (handler: Handler<Incoming, WireReply>, { onRefused }: OpsOptions) =>
  async (incoming: Incoming): Promise<WireReply> => {
    const reply = await handler(incoming).catch((cause: unknown) => {
      if (!(cause instanceof StatusError)) throw cause
      return opsReply(cause.status.code, `${cause.message}\n`)
    })
    if (reply.kind === 'body' && (reply.status === 401 || reply.status === 403))
      onRefused?.(incoming, reply)
    return reply
  }

function opsHandler(options: OpsOptions): Handler<Incoming, WireReply> {
  const scrape = new Throttled(() => exposition(options), leastExpositionMs)
  const inspect = inspector(options.inspections)
  const { page = new Map() } = options
  return async (incoming) => {
    const { method, url, headers } = incoming
    const { localAddress } = incoming.peer
    const [path = '', query] = url.split('?')
    const [host, origin] = [headers.get('host'), headers.get('origin')]
    const strange = rebindingFault(options.ownHosts, { localAddress, host, origin })
    if (strange !== undefined) return opsReply(403, `${strange}\n`)
    if (path === '/v1/token') return takeToken(options.joinToken, incoming)
    if (method !== 'GET' && method !== 'HEAD') return opsReply(405, '', { Allow: 'GET, HEAD' })
    switch (path) {
      case '/livez':
      case '/healthz':
        return opsReply(200, 'ok')
      case '/v1/healthz':
        return opsReply(200, yurthubOk)
      case '/readyz':
      case '/v1/readyz':
        return readiness(options, {
          ok: path === '/readyz' ? 'ok' : yurthubOk,
          verbose: new URLSearchParams(query).has('verbose'),
        })
      case '/metrics':
        return scrape.get()
      default:
        return (
          (await inspect(path, new URLSearchParams(query), incoming)) ??
          pageReply(page, path, incoming.peer) ??
          opsReply(404, '404 page not found\n')
        )
    }
  }
}

/** `{"jointoken":"abcdef.0123456789abcdef"}` */
export const largestToken = 1024

async function takeToken(
  intake: JoinTokenIntake | undefined,
  incoming: Incoming,
): Promise<WireReply> {
  const { method, body, peer, signal } = incoming
  if (method !== 'POST' && method !== 'PUT') return opsReply(405, '', { Allow: 'POST, PUT' })
  if (!isLoopback(peer.localAddress) || !(await intake?.authorize(incoming)))
    return opsReply(403, 'a bootstrap token is taken of root of this node only, on loopback\n')
  const content = body && (await wholeRequestBody(body, largestToken, { signal }).catch(() => ''))
  const token = parseBootstrapToken(textAt(parseJson(String(content ?? '')), 'jointoken'))
  if (token === undefined) return opsReply(400, wrongToken)
  try {
    return (await intake?.replace(token)) === true
      ? opsReply(200, takenToken)
      : opsReply(
          200,
          'without effect: the hub has credentials by file, or API servers without TLS, and uses no bootstrap token\n',
        )
  } catch {
    return opsReply(500, 'the bootstrap token cannot be stored: is the disk full?\n')
  }
}

/** Whether the cluster takes the token is known later. */
const takenToken =
  'stored: the hub requests its next certificate with it, at once if one is due; if the cluster refuses it, /readyz?verbose says so\n'

const wrongToken =
  'a bootstrap token is expected, as {"jointoken":"<6 characters>.<16 characters>"} of a-z and 0-9\n'

async function exposition({ metrics, onBroken }: OpsOptions): Promise<WireReply> {
  try {
    const { contentType, body } = await metrics.exposition()
    return opsReply(200, body, { 'Content-Type': contentType })
  } catch (cause) {
    onBroken?.(cause)
    return opsReply(500, '')
  }
}

interface ReadinessOptions {
  /** The whole answer where all checks pass. */
  readonly ok: string
  readonly verbose: boolean
}

export const checkResults = (checks: readonly ReadinessCheck[]): readonly CheckResult[] =>
  checks.map(({ name, check, isRequired, remedy }) => {
    const fault = check()
    const todo = fault === undefined ? undefined : remedy?.()
    return {
      name,
      required: isRequired?.() ?? true,
      ...(fault !== undefined && { fault }),
      ...(todo !== undefined && { remedy: todo }),
    }
  })

const isPassed = ({ fault, required }: CheckResult): boolean => fault === undefined || !required

/** Whether all required checks pass. */
export const isReady = (checks: readonly ReadinessCheck[]): boolean =>
  checkResults(checks).every(isPassed)

/** In the format of the API server's `?verbose`. */
function readiness(
  { checks, verboseLines }: OpsOptions,
  { ok, verbose }: ReadinessOptions,
): WireReply {
  const results = checkResults(checks)
  const ready = results.every(isPassed)
  if (ready && !verbose) return opsReply(200, ok)
  const lines = results.map(({ name, fault, required }) =>
    fault === undefined
      ? `[+]${name} ok`
      : `[-]${name} failed: ${fault}${required ? '' : '; readiness does not depend on it now'}`,
  )
  const verdict = ready ? 'readyz check passed' : 'readyz check failed'
  return opsReply(ready ? 200 : 503, `${[...lines, ...verboseLines(), verdict].join('\n')}\n`)
}
