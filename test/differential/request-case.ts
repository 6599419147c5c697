import type { DifferenceName } from './differences.ts'

/** In targets and bodies, the placeholder for the client's own namespace, where it writes. */
export const own = 'OWN'

/** The namespace that all clients read and none writes. */
export const shared = 'shared'

/** A request as it is sent, and the expected answers. */
export interface RequestCase {
  /** Default: GET. */
  readonly method?: string
  readonly target: string
  /**
   * Besides Host, User-Agent and Accept, or instead of them; `undefined` takes one away, a list
   * repeats it.
   */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: string | Buffer
  /** A body is sent with its length unless it is to be sent in chunks. */
  readonly chunked?: boolean
  /** Fields after a body in chunks. */
  readonly trailers?: Readonly<Record<string, string>>
  /** The whole message, instead of all this; `HOST` in it stands for the server's address. */
  readonly raw?: string
  /** It uses something that HTTP/2 cannot express. */
  readonly http1?: true
  /** The known difference in the hub's answer, which docs/design/differences.md describes. */
  readonly differs?: KnownDifference
  /**
   * A watch that API servers take for a WatchList from Kubernetes 1.34 on, and the hub before any:
   * compared where the API server does.
   */
  readonly isWatchListByDefault?: true
  /** Sent only to an API server of this sort, where it has no meaning for the other. */
  readonly only?: Upstream
}

export type Upstream = 'sandbox' | 'kube-apiserver'

export interface KnownDifference {
  readonly name: DifferenceName
  /** The code that the hub answers; 0 where it closes the connection without an answer. */
  readonly code: number
  /** Where only one sort of API server makes the answers differ: that one. */
  readonly at?: Upstream
}

export type Fields = NonNullable<RequestCase['headers']>

export const get = (target: string, headers?: Fields): RequestCase => ({
  target,
  ...(headers && { headers }),
})

/** One target with several Accept headers. */
export const accepting = (target: string, ...accepts: readonly string[]): RequestCase[] =>
  accepts.map((accept) => get(target, { Accept: accept }))

const json = 'application/json'
export const protobuf = 'application/vnd.kubernetes.protobuf'

/** A write of an object in JSON, of bytes in whatever else `headers` say. */
export function write(
  method: string,
  target: string,
  body?: object | string | Buffer,
  headers: Fields = {},
): RequestCase {
  if (body === undefined) return { method, target, headers }
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { method, target, headers: { 'Content-Type': json, ...headers }, body: bytes }
}

/** The name of a request in test output. */
export function nameOf({ method = 'GET', target, headers, body, raw }: RequestCase): string {
  if (raw !== undefined) return JSON.stringify(raw.slice(0, 160))
  const fields = Object.entries(headers ?? {}).map(
    ([name, value]) =>
      `${name}: ${typeof value === 'string' ? value.slice(0, 80) : String(value).slice(0, 80)}`,
  )
  const content = body === undefined ? [] : [body.toString('latin1').slice(0, 80)]
  return [`${method} ${target.slice(0, 160)}`, ...fields, ...content].join(' | ')
}
