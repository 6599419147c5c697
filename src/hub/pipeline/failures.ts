import { BrokenAnswer } from '../cache/recorder.ts'
import { statusBody } from '../../api/codec/render.ts'
import { BrokenStream } from '../../http/exchange/chunks.ts'
import {
  isProven,
  type BodyReply,
  type Exchange,
  type Handler,
  type Incoming,
  type WireReply,
} from '../../http/exchange/exchange.ts'
import { HeaderList } from '../../http/exchange/headers.ts'
import { mediaType, type Encoding } from '../../api/kube/media-type.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import {
  badRequest,
  internalError,
  serviceUnavailable,
  StatusError,
  type Status,
} from '../../api/kube/status.ts'
import { answerHeaders } from '../answers/replies.ts'
import { CredentialsRefused, Unreachable } from '../upstream/forward.ts'
import { MalformedPath } from '../../api/request/request-info.ts'
import { StoreFailure } from '../store/store.ts'

/**
 * A Status as an answer, with its Retry-After (apiserver pkg/endpoints/handlers/responsewriters).
 */
function statusReply(status: Status, encoding: Encoding, reason = status.message): BodyReply {
  const body = statusBody(encoding, status)
  const retryAfter = status.details?.retryAfterSeconds
  const head = answerHeaders(mediaType(encoding))
  const retried = retryAfter === undefined ? head : head.with('Retry-After', String(retryAfter))
  const headers = retried.with('Content-Length', String(body.byteLength))
  const explanation = reason === undefined ? {} : { reason }
  return { kind: 'body', from: 'hub', explanation, status: status.code, headers, body }
}

/** The Status for a failure; `undefined` for an unexpected one. */
function statusOf(error: unknown): Status | undefined {
  if (error instanceof StatusError) return error.status
  if (error instanceof MalformedSelector) return badRequest(error.message)
  if (error instanceof BrokenAnswer || error instanceof BrokenStream)
    return serviceUnavailable('the answer of the API server broke off')
  if (error instanceof StoreFailure)
    return serviceUnavailable(
      'the record for this request cannot be read, and no API server was reached',
    )
  if (error instanceof CredentialsRefused) {
    return serviceUnavailable(
      "the API server does not accept the hub's own credentials (401), or the hub has none yet, and the answer is not in the cache: the hub's log and /readyz?verbose say why",
    )
  }
  if (error instanceof Unreachable) {
    return error.sent
      ? serviceUnavailable(
          'the connection to the API server broke after the request was sent: whether it took effect is unknown',
        )
      : serviceUnavailable('no API server can be reached')
  }
  return undefined
}

/** Why, where the Status does not say it. */
const reasonOf = (error: unknown): string | undefined =>
  error instanceof StatusError ? error.reason : undefined

/** Whether a failure has a Status of its own. */
export const isExpected = (error: unknown): boolean => statusOf(error) !== undefined

/** Called for unexpected failures: the one place where they are logged. */
export type OnUnexpected = (
  error: unknown,
  what: { readonly method: string; readonly url: string },
) => void

/** The Status of a failure, in the encoding that the client accepts. */
export function failureReply(
  error: unknown,
  exchange: Exchange,
  onUnexpected: OnUnexpected,
): BodyReply {
  const [representation] = exchange.representations
  const status = statusFor(error, exchange, onUnexpected)
  const shown = isProven(exchange) ? status : withoutEcho(status)
  return statusReply(shown, representation?.encoding ?? 'json', reasonOf(error) ?? status.message)
}

/**
 * The Status without its message, which may repeat a selector of 60 KB: an unproven caller must not
 * decide how large an answer the hub holds for it. Messages of other codes are the hub's own.
 */
function withoutEcho(status: Status): Status {
  const { code, details } = status
  if (code >= 500 || code === 401 || code === 429) return status
  const { details: _details, ...plain } = badRequest('the request was refused')
  const retryAfterSeconds = details?.retryAfterSeconds
  return {
    ...plain,
    ...(status.reason !== undefined && { reason: status.reason }),
    code,
    ...(retryAfterSeconds !== undefined && { details: { retryAfterSeconds } }),
  }
}

/** Called for answers to requests that never became exchanges. */
type OnRefused = (incoming: Incoming, reply: BodyReply) => void

/**
 * Answers a Status in JSON where no layer below caught the failure: the accepted representations
 * are unknown then.
 */
export function withLastResort(onUnexpected: OnUnexpected, onRefused: OnRefused) {
  return (next: Handler<Incoming, WireReply>): Handler<Incoming, WireReply> =>
    (incoming) =>
      next(incoming).catch((error: unknown) => {
        const reply =
          error instanceof MalformedPath
            ? noRequest()
            : statusReply(statusFor(error, incoming, onUnexpected), 'json', reasonOf(error))
        onRefused(incoming, reply)
        return reply
      })
}

/**
 * Go's net/http answers a malformed request in plain text, before the API server sees it (net/http
 * server.go, serve).
 */
function noRequest(): BodyReply {
  const headers = ['Content-Type', 'text/plain; charset=utf-8', 'Connection', 'close']
  const body = Buffer.from('400 Bad Request')
  return { kind: 'body', from: 'hub', status: 400, headers: new HeaderList(headers), body }
}

function statusFor(
  error: unknown,
  { method, url, signal }: Incoming,
  onUnexpected: OnUnexpected,
): Status {
  // The hub itself has ended the request, and whatever waited for something has failed of that.
  if (signal.reason instanceof StatusError) return signal.reason.status
  const status = statusOf(error)
  if (status) return status
  if (signal.aborted) return clientClosedRequest
  onUnexpected(error, { method, url })
  return internalError('the hub failed to answer')
}

/** Only logs and metrics show it: the client has gone before its answer. 499 as in nginx. */
const clientClosedRequest: Status = {
  ...internalError('the client has closed its connection'),
  code: 499,
}
