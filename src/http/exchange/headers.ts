/**
 * Header fields in their order, case and number: a flat list of names and values, as in node:http
 * and undici. Immutable.
 */
export class HeaderList {
  readonly raw: readonly string[]
  constructor(raw: readonly string[] = []) {
    this.raw = raw
  }

  /** The first value; `name` in lower case. */
  get(name: string): string | undefined {
    const at = this.#find(name)
    return at < 0 ? undefined : this.raw[at + 1]
  }

  /** Every value, in order; `name` in lower case. */
  all(name: string): string[] {
    const values: string[] = []
    for (let at = this.#find(name); at >= 0; at = this.#find(name, at + 2))
      values.push(this.raw[at + 1] ?? '')
    return values
  }

  has(name: string): boolean {
    return this.#find(name) >= 0
  }

  isRepeated(name: string): boolean {
    const first = this.#find(name)
    return first >= 0 && this.#find(name, first + 2) >= 0
  }

  /** The index of the next field of this name; -1: there is none. */
  #find(name: string, from = 0): number {
    for (let i = from; i < this.raw.length; i += 2) {
      const candidate = this.raw[i] ?? ''
      if (candidate.length === name.length && candidate.toLowerCase() === name) return i
    }
    return -1
  }

  /**
   * Without the fields for whose lower-case name `drop` returns true; the same list where there are
   * none.
   */
  without(drop: (name: string) => boolean): HeaderList {
    let kept: string[] | undefined
    for (let i = 0; i < this.raw.length; i += 2) {
      const name = this.raw[i] ?? ''
      if (drop(name.toLowerCase())) kept ??= this.raw.slice(0, i)
      else kept?.push(name, this.raw[i + 1] ?? '')
    }
    return kept ? new HeaderList(kept) : this
  }

  with(name: string, value: string): HeaderList {
    return new HeaderList([...this.raw, name, value])
  }
}

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Without hop-by-hop fields (RFC 9110 section 7.6.1): the known ones, and those that Connection
 * names. Authorization always stays: without it, the API server's answer to an anonymous caller
 * would be taken for its answer to a token.
 */
export function endToEnd(headers: HeaderList): HeaderList {
  const named = namedByConnection(headers)
  const { raw } = headers
  let kept: string[] | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (isHopByHop(name, named)) kept ??= raw.slice(0, i)
    else kept?.push(name, raw[i + 1] ?? '')
  }
  return kept ? new HeaderList(kept) : headers
}

/** The fields that Connection names, in lower case. */
export function namedByConnection(headers: HeaderList): ReadonlySet<string> {
  if (!headers.has('connection')) return none
  const named = new Set(
    headers
      .all('connection')
      .flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase())),
  )
  named.delete('authorization')
  return named
}

const none: ReadonlySet<string> = new Set()

/** By the length of its name most fields are none of those. */
const hopByHopLengths = [...hopByHop].reduce((mask, { length }) => mask | (1 << length), 0)

/** Whether a field is hop-by-hop, with those that Connection names (see `endToEnd`). */
export function isHopByHop(name: string, named: ReadonlySet<string>): boolean {
  const mayBe = name.length < 32 && (hopByHopLengths & (1 << name.length)) !== 0
  if (!mayBe && named.size === 0) return false
  const lower = name.toLowerCase()
  return (mayBe && hopByHop.has(lower)) || named.has(lower)
}

/**
 * Whether an API server sent these fields: each of its answers has an Audit-Id (apiserver
 * pkg/endpoints/filters/audit_init.go), which gateways do not add.
 */
export const isFromApiServer = (headers: HeaderList): boolean =>
  headers.get('audit-id') !== undefined

/** Whether a caller requests impersonation, which only the API server can authorize. */
export const impersonates = (headers: HeaderList): boolean =>
  headers.raw.some((field, i) => i % 2 === 0 && /^impersonate-/i.test(field))

const acceptEncoding = 'accept-encoding'

/** The codings in Accept-Encoding that the hub can decode, as written. */
const readable = (headers: HeaderList): string[] =>
  headers
    .all(acceptEncoding)
    .flatMap((value) => value.split(',').map((coding) => coding.trim()))
    .filter((coding) => /^(gzip|identity)\s*(;|$)/i.test(coding))

/**
 * Whether a client accepts answers compressed with gzip: where it names gzip, as API servers read
 * the field.
 */
export const acceptsGzip = (headers: HeaderList): boolean =>
  headers.has(acceptEncoding) &&
  readable(headers).some(
    (coding) => /^gzip/i.test(coding) && !/;\s*q=0(\.0*)?\s*(;|$)/i.test(coding),
  )

/** The same fields, with only the codings that the client accepts and the hub can decode. */
export function withReadableEncodings(headers: HeaderList): HeaderList {
  if (!headers.has(acceptEncoding)) return headers
  const codings = readable(headers)
  const others = headers.without((name) => name === acceptEncoding)
  return codings.length === 0 ? others : others.with('Accept-Encoding', codings.join(', '))
}

/** The same fields, with gzip as the only coding, whatever the client accepts. */
export const withGzipOnly = (headers: HeaderList): HeaderList =>
  headers.without((name) => name === acceptEncoding).with('Accept-Encoding', 'gzip')
