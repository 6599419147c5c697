import { request as plainly } from 'node:http'
import { request as overTls } from 'node:https'
import { ownVersion } from '../../base/own-version.ts'
import { wholeAnswer } from '../../base/whole-answer.ts'
import { parseJson, type Json } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import type { Credentials } from '../../config/credentials.ts'
import { connectionTls } from './dial.ts'
import { explainTlsFailure } from './tls-failure.ts'

export interface ApiRequest {
  readonly method: string
  readonly path: string
  /** An API object, or a patch. */
  readonly body?: object
  /** Default: JSON. */
  readonly contentType?: string
}

/** The answer of an API server. */
export interface ApiResponse {
  readonly status: number
  /** `undefined` where it is no JSON. */
  readonly body: Json | undefined
}

/** Rejects where there was no answer, with a message for people. */
export type ApiCall = (request: ApiRequest) => Promise<ApiResponse>

export interface ApiCallOptions {
  readonly patienceMs?: number
  /**
   * Whether the server's certificate is left unverified. For answers that are not secret, and are
   * verified by other means.
   */
  readonly unverified?: true
  /** Gives up the requests. */
  readonly signal?: AbortSignal
}

const usualPatienceMs = 15_000

/** The characters that are read of the answer of an unverified server. */
export const mostOfUnverified = 1024 * 1024

/**
 * Requests to one API server, each on a connection of its own: for the few that are sent before
 * there is a hub, or with other credentials than the hub's.
 */
export const apiCall =
  (server: URL, credentials: Credentials, options: ApiCallOptions = {}): ApiCall =>
  async ({ method, path, body, contentType = 'application/json' }) => {
    const { patienceMs = usualPatienceMs, unverified, signal } = options
    const { token } = credentials
    const isPlain = server.protocol === 'http:'
    const asking = (isPlain ? plainly : overTls)(new URL(path, server), {
      method,
      agent: false,
      ...(signal && { signal }),
      headers: {
        accept: 'application/json',
        'user-agent': `nodehub/${ownVersion()}`,
        ...(body && { 'content-type': contentType }),
        ...(token && { authorization: `Bearer ${token.reveal()}` }),
      },
      ...(!isPlain && tlsOf(credentials, unverified)),
    })
    asking.end(body && JSON.stringify(body))
    const { status, text } = await wholeAnswer(
      asking,
      patienceMs,
      unverified && mostOfUnverified,
    ).catch((cause: unknown) => {
      throw explainTlsFailure(cause, server.origin, credentials)
    })
    return { status, body: parseJson(text) }
  }

const tlsOf = (credentials: Credentials, unverified: true | undefined) =>
  unverified ? { rejectUnauthorized: false } : connectionTls(credentials)

/**
 * Requests to the first of `servers` that answers with anything but a failure of its own or of a
 * gateway (429 and 5xx).
 */
export const anyApiCall =
  (servers: readonly URL[], credentials: Credentials, options?: ApiCallOptions): ApiCall =>
  async (request) => {
    let failure: unknown = new Error('there is no API server')
    for (const server of servers) {
      options?.signal?.throwIfAborted()
      try {
        const answer = await apiCall(server, credentials, options)(request)
        if (answer.status < 500 && answer.status !== 429) return answer
        failure = new ApiRefusal(server.origin, request, answer)
      } catch (cause) {
        failure = cause
      }
    }
    throw failure
  }

/** An API server refused a request, or cannot serve it now. */
export class ApiRefusal extends Error {
  readonly code = 'API_REFUSAL'
  readonly status: number
  constructor(origin: string, { method, path }: ApiRequest, { status, body }: ApiResponse) {
    // Printed on terminals, before the server is verified: control characters are removed.
    const message = textAt(body, 'message').slice(0, 500).replaceAll(/\p{C}/gu, ' ')
    super(
      `${origin} answered ${status} to ${method} ${path}${message === '' ? '' : `: ${message}`}`,
    )
    this.status = status
  }
}
