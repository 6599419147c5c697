import { isDeepStrictEqual } from 'node:util'
import { every, within } from '../base/clock.ts'
import type { IssuedCertificate } from '../certificates/authority.ts'
import type { BodyReply, Incoming } from '../http/exchange/exchange.ts'
import { HeaderList } from '../http/exchange/headers.ts'
import { isValidNow } from '../hub/identity/certificate.ts'
import type { Json, JsonObject } from '../api/kube/json.ts'
import {
  badRequest,
  internalError,
  methodNotAllowed,
  resourceNotFound,
  StatusError,
  timeout,
  unauthorized,
  type Status,
} from '../api/kube/status.ts'
import { messageOf } from '../config/settings.ts'
import { listenSecurely, type Listener, type ServingCredentials } from '../http/server/listener.ts'
import { isAdmissionPath, reviewAdmission, type AdmissionOptions } from './admission/review.ts'
import { reviewConversion } from './crd/conversion.ts'
import { conversionPath } from './crd/definition.ts'
import { ReviewBodies, type ShedReason } from './review-bodies.ts'

export interface WebhookOptions extends AdmissionOptions {
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  /** Read about every second: new connections are served with the latest. */
  readonly certificate: () => IssuedCertificate
  /**
   * PEM, read as often. Where it is given, AdmissionReviews are accepted only from clients with a
   * certificate that it signed, and their connections are closed last. API servers can be
   * configured to present one for admission, and never present one for conversion
   * (apiextensions-apiserver pkg/apiserver/conversion).
   */
  readonly clientCa?: () => string | undefined
  /** Why requests should go to another replica, if they should: the answer of `/readyz`. */
  readonly unready?: () => string | undefined
  /** Called where a review could not be answered for a reason of our own, or a connection broke. */
  readonly onFailed?: (cause: unknown) => void
  /** Called for each review that is refused before its body has been read whole. */
  readonly onRefused?: (why: RefusalReason) => void
}

/**
 * Why a review is refused: there is no room for its body, it does not arrive, or its client shows
 * no certificate.
 */
export type RefusalReason = ShedReason | 'unauthenticated'

/** API servers use HTTP/1.1, with one connection for each concurrent review. */
export const mostConnections = 1_000

/**
 * The limit of connections on which no caller is proven, where `clientCa` is given: an API server
 * that begins many reviews at once has not shown its certificate on any of their connections yet.
 * Without `clientCa` API servers are unproven themselves, for as many reviews as they have in
 * flight.
 */
export const mostUnproven = 256

/**
 * The budgets of bytes for bodies. Conversions have their own: their clients present no
 * certificate, and they must not block those that do. Parsed, each byte may take 24 of the heap
 * (`{},{},…`), and the Deployment has room for that.
 */
export const admissionBytes = 12 * 1024 * 1024
export const conversionBytes = 8 * 1024 * 1024

/** The longest that an API server waits for a webhook (30 s). */
export const longestMs = 30_000

const rotationMs = 1_000

/**
 * Serves AdmissionReviews, ConversionReviews, `/healthz`, `/livez` and `/readyz` over TLS. Without
 * `clientCa` every client that can connect is answered: an answer contains nothing but the request
 * and facts about pools. Probes never need a certificate.
 */
export async function serveWebhooks(options: WebhookOptions): Promise<Listener> {
  const { address, port, onFailed = () => undefined, onRefused = () => undefined } = options
  let shown = credentialsOf(options)
  const admissions = new ReviewBodies(admissionBytes, onRefused)
  const conversions = new ReviewBodies(conversionBytes, onRefused)
  const listener = await listenSecurely({
    at: [{ host: address, port }],
    maxConnections: mostConnections,
    ...(options.clientCa !== undefined && { mostUnproven }),
    credentials: shown,
    onBroken: onFailed,
    handler: (incoming) => answer(incoming, { ...options, onRefused, admissions, conversions }),
  })
  const rotation = every(rotationMs, () => {
    const now = credentialsOf(options)
    if (isDeepStrictEqual(now, shown)) return
    shown = now
    listener.replaceCredentials(now)
  })
  return {
    ...listener,
    close: async (graceMs) => {
      rotation[Symbol.dispose]()
      await listener.close(graceMs)
    },
  }
}

function credentialsOf({ certificate, clientCa }: WebhookOptions): ServingCredentials {
  const ca = clientCa?.()
  return { ...certificate(), ...(ca !== undefined && { clientCa: ca }) }
}

/** The options and budgets of all requests. */
interface Answering extends WebhookOptions {
  readonly admissions: ReviewBodies
  readonly conversions: ReviewBodies
  readonly onRefused: (why: RefusalReason) => void
}

/**
 * Every failure is answered with a Status, which an API server logs before it applies the webhook's
 * failure policy.
 */
async function answer(incoming: Incoming, options: Answering): Promise<BodyReply> {
  try {
    const reply = await within(longestMs, routed(incoming, options))
    return reply ?? json(504, timeout('no answer was found in time'))
  } catch (cause) {
    if (cause instanceof StatusError) return json(cause.status.code, cause.status)
    options.onFailed?.(cause)
    return json(500, internalError(messageOf(cause)))
  }
}

/**
 * Whether the client presents a certificate signed by `--client-ca`. Its connection counts as
 * proven from then on.
 */
function isAuthenticated({ peer, onProven }: Incoming): boolean {
  const certificate = peer.tls?.certificate
  if (!certificate || !isValidNow(certificate)) return false
  onProven?.(false)
  return true
}

async function routed(incoming: Incoming, options: Answering): Promise<BodyReply> {
  const authenticated = isAuthenticated(incoming)
  const path = incoming.url.split('?')[0] ?? ''
  const isProbe = path === '/healthz' || path === '/livez' || path === '/readyz'
  const isReview = isAdmissionPath(path) || path === conversionPath
  if (!isProbe && !isReview) throw new StatusError(resourceNotFound())
  const allowed = isProbe ? ['GET', 'HEAD'] : ['POST']
  if (incoming.upgrade || !allowed.includes(incoming.method))
    throw new StatusError(methodNotAllowed())
  if (isProbe) return probed(path === '/readyz' ? options.unready?.() : undefined)
  if (path === conversionPath) {
    using body = await options.conversions.read(incoming)
    return json(200, reviewConversion(jsonIn(body.content)))
  }
  if (options.clientCa !== undefined && !authenticated) {
    options.onRefused('unauthenticated')
    throw new StatusError(unauthorized())
  }
  using body = await options.admissions.read(incoming)
  return json(200, await reviewAdmission(path, jsonIn(body.content), options))
}

const probed = (unready: string | undefined): BodyReply =>
  reply(unready === undefined ? 200 : 503, 'text/plain; charset=utf-8', unready ?? 'ok')

function jsonIn(body: Buffer): Json {
  try {
    return JSON.parse(body.toString()) as Json
  } catch (cause) {
    throw new StatusError(badRequest('the body is not JSON'), { cause })
  }
}

const json = (status: number, body: Status | JsonObject): BodyReply =>
  reply(status, 'application/json', JSON.stringify(body))

const reply = (status: number, type: string, text: string): BodyReply => {
  const body = Buffer.from(text)
  return {
    kind: 'body',
    from: 'hub',
    status,
    headers: new HeaderList(['Content-Type', type, 'Content-Length', `${body.byteLength}`]),
    body,
  }
}
