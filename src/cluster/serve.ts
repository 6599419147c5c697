import { after, every } from '../base/clock.ts'
import type { BodyReply, Incoming } from '../exchange/exchange.ts'
import { HeaderList } from '../exchange/headers.ts'
import { wholeRequestBody } from '../exchange/request-body.ts'
import type { Json, JsonObject } from '../kube/json.ts'
import {
  badRequest,
  internalError,
  methodNotAllowed,
  resourceNotFound,
  StatusError,
  timeout,
  type Status,
} from '../kube/status.ts'
import { listenSecurely, type Listener } from '../server/listener.ts'
import { isAdmissionPath, reviewed, type AdmissionRules } from './admission/review.ts'
import { convertedReview } from './crd/conversion-review.ts'
import { conversionPath } from './crd/definition.ts'

/** A serving certificate with its chain, and its key, PEM. */
export interface ServingPair {
  readonly cert: string
  readonly key: string
}

export interface WebhookOptions extends AdmissionRules {
  readonly address: string
  /** 0: any free port. */
  readonly port: number
  /** Asked about every second: connections made after it says something else are shown that. */
  readonly certificate: () => ServingPair
  /** Why requests should go to another replica, if they should: what `/readyz` says. */
  readonly unready?: () => string | undefined
  /** Called where a review could not be answered for a reason of our own, or a connection broke. */
  readonly onFailed?: (cause: unknown) => void
}

/** API servers keep a connection or a few each; so do probes. */
const mostConnections = 1_000

/** An object is 1.5 MB at most in etcd, and an update is sent with what it was before; a list to be converted is cut up by nobody. */
const mostBytes = 8 * 1024 * 1024

/** The longest that an API server waits for a webhook (30 s): whatever takes longer is waited for by nobody. */
const longestMs = 30_000

const rotationMs = 1_000

/**
 * Serves AdmissionReviews, ConversionReviews, `/healthz`, `/livez` and `/readyz` over TLS. Whoever can connect is answered, as API servers show
 * no certificate unless they are set up to: an answer says nothing that is not in the question or in the pools.
 */
export async function serveWebhooks(options: WebhookOptions): Promise<Listener> {
  const { address, port, certificate, onFailed = () => undefined } = options
  let shown = certificate()
  const listener = await listenSecurely({
    host: address,
    port,
    maxConnections: mostConnections,
    credentials: credentialsOf(shown),
    onBroken: onFailed,
    handler: (incoming) => answer(incoming, options),
  })
  const rotation = every(rotationMs, () => {
    const now = certificate()
    if (now.cert === shown.cert && now.key === shown.key) return
    shown = now
    listener.replaceCredentials(credentialsOf(now))
  })
  return {
    ...listener,
    close: async (graceMs) => {
      rotation[Symbol.dispose]()
      await listener.close(graceMs)
    },
  }
}

const credentialsOf = ({ cert, key }: ServingPair) => ({ certificate: cert, key })

/** Whatever goes wrong is an answer: a Status, which an API server logs before it goes by the webhook's policy. */
async function answer(incoming: Incoming, options: WebhookOptions): Promise<BodyReply> {
  try {
    return await within(longestMs, () => routed(incoming, options))
  } catch (cause) {
    if (cause instanceof StatusError) return json(cause.status.code, cause.status)
    options.onFailed?.(cause)
    const message = cause instanceof Error ? cause.message : String(cause)
    return json(500, internalError(message))
  }
}

async function routed(incoming: Incoming, options: WebhookOptions): Promise<BodyReply> {
  const path = incoming.url.split('?')[0] ?? ''
  const isProbe = path === '/healthz' || path === '/livez' || path === '/readyz'
  const isReview = isAdmissionPath(path) || path === conversionPath
  if (!isProbe && !isReview) throw new StatusError(resourceNotFound())
  const allowed = isProbe ? ['GET', 'HEAD'] : ['POST']
  if (incoming.upgrade || !allowed.includes(incoming.method))
    throw new StatusError(methodNotAllowed())
  if (isProbe) return probed(path === '/readyz' ? options.unready?.() : undefined)
  const review = await jsonIn(incoming)
  if (path === conversionPath) return json(200, convertedReview(review))
  return json(200, await reviewed(path, review, options))
}

const probed = (unready: string | undefined): BodyReply =>
  reply(unready === undefined ? 200 : 503, 'text/plain; charset=utf-8', unready ?? 'ok')

async function jsonIn({ body }: Incoming): Promise<Json> {
  const text = body ? (await wholeRequestBody(body, mostBytes)).toString() : ''
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    throw new StatusError(badRequest('the body is not JSON'), { cause })
  }
}

async function within<T>(ms: number, act: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  using _timer = after(ms, () =>
    late.reject(new StatusError(timeout('no answer was found in time'))),
  )
  return await Promise.race([act(), late.promise])
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
