import { qualifiedResource } from './gvk.ts'

/**
 * The machine-readable reasons of a Status that the hub sends or checks (apimachinery
 * pkg/apis/meta/v1/types.go).
 */
export type StatusReason =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Expired'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'Invalid'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ServiceUnavailable'
  | 'Timeout'

export interface StatusCause {
  readonly reason?: string
  readonly message?: string
  readonly field?: string
}

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

/** `metav1.Status`, in the field order the API server writes. */
export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Failure' | 'Success'
  readonly message?: string
  readonly reason?: StatusReason
  readonly details?: StatusDetails
  readonly code: number
}

/**
 * A failure to send to the client. The rescue layer encodes its Status in the representation that
 * the client accepts.
 */
export class StatusError extends Error {
  readonly status: Status
  /** Why, where the answer does not say it; absent: its message says it. */
  readonly reason: string | undefined
  constructor(status: Status, options?: ErrorOptions & { readonly reason?: string }) {
    // Made for each refused request. No one reads the trace, which costs a flooded hub 1 % of its
    // time.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(status.message, options)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'StatusError'
    this.status = status
    this.reason = options?.reason
  }
}

function failure(
  code: number,
  reason: StatusReason,
  message: string,
  details?: StatusDetails,
): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details && { details }),
    code,
  }
}

interface Named {
  readonly group: string
  readonly resource: string
  readonly name?: string
}

const detailsOf = ({ group, resource, name }: Named): StatusDetails => ({
  ...(name !== undefined && { name }),
  ...(group !== '' && { group }),
  kind: resource,
})

// One constructor per reason, worded as in apimachinery pkg/api/errors/errors.go.

export const badRequest = (message: string): Status => failure(400, 'BadRequest', message)

export const unauthorized = (): Status => failure(401, 'Unauthorized', 'Unauthorized')

export const forbidden = (message: string, details: StatusDetails = {}): Status =>
  failure(403, 'Forbidden', message, details)

export const notFound = (what: Named): Status =>
  failure(
    404,
    'NotFound',
    `${qualifiedResource(what)} "${what.name ?? ''}" not found`,
    detailsOf(what),
  )

export const resourceNotFound = (): Status =>
  failure(404, 'NotFound', 'the server could not find the requested resource', {})

export const methodNotAllowed = (): Status =>
  failure(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  )

export const notAcceptable = (offered: readonly string[]): Status =>
  failure(
    406,
    'NotAcceptable',
    `406: Not Acceptable\n\nAvailable representations: ${offered.join(', ')}`,
    {},
  )

/**
 * For custom resources, and for conversions that are not offered (apiserver
 * pkg/endpoints/handlers/negotiation/errors.go).
 */
export const onlyAcceptable = (offered: readonly string[]): Status =>
  failure(
    406,
    'NotAcceptable',
    `only the following media types are accepted: ${offered.join(', ')}`,
  )

export const alreadyExists = (what: Named): Status =>
  failure(
    409,
    'AlreadyExists',
    `${qualifiedResource(what)} "${what.name ?? ''}" already exists`,
    detailsOf(what),
  )

export const conflict = (what: Named, cause: string): Status =>
  failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualifiedResource(what)} "${what.name ?? ''}": ${cause}`,
    detailsOf(what),
  )

export const expired = (message: string): Status => failure(410, 'Expired', message)

export const requestEntityTooLarge = (message: string): Status =>
  failure(413, 'RequestEntityTooLarge', message)

export const unsupportedMediaType = (message: string): Status =>
  failure(415, 'UnsupportedMediaType', message)

export const invalid = (message: string, details: StatusDetails): Status =>
  failure(422, 'Invalid', message, details)

export const tooManyRequests = (message: string, retryAfterSeconds: number): Status =>
  failure(429, 'TooManyRequests', message, { retryAfterSeconds })

export const internalError = (message: string): Status =>
  failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })

/**
 * Without Retry-After by default: client-go retries a 503 with it ten times, and backs off without
 * it.
 */
export const serviceUnavailable = (message: string, retryAfterSeconds?: number): Status =>
  failure(
    503,
    'ServiceUnavailable',
    message,
    retryAfterSeconds === undefined ? undefined : { retryAfterSeconds },
  )

export const timeout = (message: string): Status => failure(504, 'Timeout', message, {})

/**
 * The answer to a request for a version that the server has not reached (apiserver
 * pkg/storage/errors.go).
 */
export const tooLargeResourceVersion = (requested: string, current: string): Status =>
  failure(
    504,
    'Timeout',
    `Timeout: Too large resource version: ${requested}, current: ${current}`,
    {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  )
