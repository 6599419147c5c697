import type { Dispatcher } from 'undici'
import { follow } from '../../base/abort.ts'
import { after, sleep } from '../../base/clock.ts'
import { isObject, type JsonObject } from '../../api/kube/json.ts'
import { listAt, textAt } from '../../api/kube/json-at.ts'
import type { ApiAccess } from './access.ts'
import { ApiFailure, isNotFound } from './failure.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface ApiRequest {
  readonly method: Method
  /** With its query. */
  readonly path: string
  readonly body?: string | Uint8Array
  readonly contentType?: string
  /** Default: JSON. */
  readonly accept?: string
  readonly signal?: AbortSignal | undefined
  /** How many attempts are made while the API server answers with Retry-After. Default: 6. */
  readonly tries?: number
  /** Of the whole answer. Default: half a minute. */
  readonly timeoutMs?: number
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly body: string
}

export interface ApiServerOptions {
  readonly userAgent: string
  /** Called for each request that was answered, and, without a status, for each that was not. */
  readonly onRequest?: (request: ApiRequest, status: number | undefined) => void
}

/** An API server that sheds load sends Retry-After: requests are retried at most this often. */
const mostTries = 6
const longestWaitMs = 30_000

/** The largest answer that is read whole: lists go through `Informer`, piece by piece. */
const largestAnswer = 64 * 1024 * 1024

/**
 * Sends requests to the API server as one client: over reused connections, and again where the
 * server sheds load. All requests of `nodehub cluster` pass here.
 */
export class ApiServer {
  readonly #access: ApiAccess
  readonly #options: ApiServerOptions

  constructor(access: ApiAccess, options: ApiServerOptions) {
    this.#access = access
    this.#options = options
  }

  get url(): URL {
    return this.#access.server
  }

  /** The answer, with any status. Rejects on a timeout. */
  async send(request: ApiRequest): Promise<ApiResponse> {
    for (let tries = 1; ; tries++) {
      const answer = await this.#once(request, tries > 1)
      const wait = tries < (request.tries ?? mostTries) ? retryDelayOf(answer) : undefined
      if (wait === undefined) return answer
      await sleep(wait, request.signal)
    }
  }

  async #once(request: ApiRequest, refused: boolean): Promise<ApiResponse> {
    const bound = new AbortController()
    using _followed = request.signal && follow(request.signal, bound)
    using _patience = after(request.timeoutMs ?? 30_000, () =>
      bound.abort(new Error(`${request.method} ${request.path}: no answer in time`)),
    )
    const { statusCode, headers, body } = await this.open(request, bound.signal, refused)
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of body) {
      chunks.push(chunk as Buffer)
      size += (chunk as Buffer).length
      if (size > largestAnswer) throw new Error(`${request.path}: an answer of over 64 MiB`)
    }
    return { status: statusCode, headers, body: Buffer.concat(chunks).toString() }
  }

  /**
   * The head of the answer, with its body to be read; rejects when `signal` aborts, as does the
   * body.
   */
  async open(
    request: ApiRequest,
    signal: AbortSignal,
    refused = false,
  ): Promise<Dispatcher.ResponseData> {
    const {
      method,
      path,
      body,
      contentType = 'application/json',
      accept = 'application/json',
    } = request
    signal.throwIfAborted()
    const { agent, headers } = await this.#access.transport(refused)
    try {
      const answer = await agent.request({
        origin: this.url.origin,
        path: `${this.url.pathname.replace(/\/$/, '')}${path}`,
        method,
        signal,
        headersTimeout: 60_000,
        // The API server sends a bookmark about every minute.
        bodyTimeout: 150_000,
        headers: {
          accept,
          'user-agent': this.#options.userAgent,
          ...headers,
          ...(body !== undefined && { 'content-type': contentType }),
        },
        ...(body !== undefined && { body }),
      })
      this.#options.onRequest?.(request, answer.statusCode)
      if (answer.statusCode === 401) await this.#access.transport(true)
      return answer
    } catch (error) {
      this.#options.onRequest?.(request, undefined)
      throw error
    }
  }

  /** The object of the answer. Rejects with `ApiFailure` for any status but one of success. */
  async call(request: ApiRequest): Promise<JsonObject> {
    const { status, body } = await this.send(request)
    if (status >= 200 && status < 300) return JSON.parse(body) as JsonObject
    throw new ApiFailure(`${request.method} ${request.path}`, status, body)
  }

  /** `undefined` where there is none. */
  async get(
    path: string,
    how: Omit<ApiRequest, 'method' | 'path'> = {},
  ): Promise<JsonObject | undefined> {
    try {
      return await this.call({ ...how, method: 'GET', path })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  /** The objects of a collection, read in pages. */
  async *list(
    path: string,
    selectors: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): AsyncGenerator<JsonObject> {
    let next = ''
    do {
      const query = { ...selectors, limit: '500', ...(next !== '' && { continue: next }) }
      const page = await this.get(`${path}?${new URLSearchParams(query)}`, { signal })
      yield* listAt(page, 'items').filter(isObject)
      next = textAt(page, 'metadata', 'continue')
    } while (next !== '')
  }

  create(path: string, object: JsonObject): Promise<JsonObject> {
    return this.call({ method: 'POST', path, body: JSON.stringify(object) })
  }

  /** Applies a merge patch; one with a version is refused with 409 where another is there. */
  patch(path: string, patch: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    return this.call({
      method: 'PATCH',
      path,
      contentType: 'application/merge-patch+json',
      body: JSON.stringify(patch),
      signal,
    })
  }
}

/** A write that was shed has not been made: 429, and 503 with Retry-After, as client-go assumes. */
function retryDelayOf({ status, headers }: ApiResponse): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds * 1000, longestWaitMs)
    : undefined
}
