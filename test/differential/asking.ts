import type { DifferenceName } from './differences.ts'

/**
 * Stands, in targets and bodies, for the namespace that belongs to one way in alone, for what is
 * written there.
 */
export const own = 'OWN'

/** The namespace that all read and nobody writes. */
export const shared = 'shared'

/** A request as it is written on a connection, and what is known of its answers. */
export interface Asking {
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
  /** It says something that HTTP/2 has no words for. */
  readonly http1?: true
  /** What the hub is known to answer otherwise, here and in docs/differences.md. */
  readonly differs?: Differing
  /** Only at an API server of this sort, where it means nothing to the other. */
  readonly only?: Upstream
}

export type Upstream = 'sandbox' | 'kube-apiserver'

export interface Differing {
  readonly name: DifferenceName
  /** The code the hub answers, 0 where it closes the connection without an answer. */
  readonly code: number
  /** Where the two are alike with one sort of API server: the other. */
  readonly at?: Upstream
}

export type Fields = NonNullable<Asking['headers']>

export const get = (target: string, headers?: Fields): Asking => ({
  target,
  ...(headers && { headers }),
})

/** One target in several forms. */
export const accepting = (target: string, ...accepts: readonly string[]): Asking[] =>
  accepts.map((accept) => get(target, { Accept: accept }))

const json = 'application/json'
export const protobuf = 'application/vnd.kubernetes.protobuf'

/** A write of an object in JSON, of bytes in whatever else `headers` say. */
export function write(
  method: string,
  target: string,
  body?: object | string | Buffer,
  headers: Fields = {},
): Asking {
  if (body === undefined) return { method, target, headers }
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return { method, target, headers: { 'Content-Type': json, ...headers }, body: bytes }
}

/** What a request is called where its answers differ. */
export function nameOf({ method = 'GET', target, headers, body, raw }: Asking): string {
  if (raw !== undefined) return JSON.stringify(raw.slice(0, 160))
  const fields = Object.entries(headers ?? {}).map(
    ([name, value]) =>
      `${name}: ${typeof value === 'string' ? value.slice(0, 80) : String(value).slice(0, 80)}`,
  )
  const content = body === undefined ? [] : [body.toString('latin1').slice(0, 80)]
  return [`${method} ${target.slice(0, 160)}`, ...fields, ...content].join(' | ')
}
