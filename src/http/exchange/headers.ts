/**
 * Header fields in the order, case and number in which they came: a flat list of names and values,
 * as node:http and undici have it. Immutable.
 */
export class HeaderList {
  readonly raw: readonly string[]
  constructor(raw: readonly string[] = []) {
    this.raw = raw
  }

  /** The first value; `name` in lower case. */
  get(name: string): string | undefined {
    for (let i = 0; i < this.raw.length; i += 2) {
      const candidate = this.raw[i] ?? ''
      if (candidate.length === name.length && candidate.toLowerCase() === name)
        return this.raw[i + 1]
    }
    return undefined
  }

  /** Every value, in order; `name` in lower case. */
  all(name: string): string[] {
    const values: string[] = []
    for (let i = 0; i < this.raw.length; i += 2) {
      const candidate = this.raw[i] ?? ''
      if (candidate.length === name.length && candidate.toLowerCase() === name)
        values.push(this.raw[i + 1] ?? '')
    }
    return values
  }

  /** Without the fields that `drop` names, given lower-case names. */
  without(drop: (name: string) => boolean): HeaderList {
    const kept: string[] = []
    for (let i = 0; i < this.raw.length; i += 2) {
      const name = this.raw[i] ?? ''
      if (!drop(name.toLowerCase())) kept.push(name, this.raw[i + 1] ?? '')
    }
    return new HeaderList(kept)
  }

  with(name: string, value: string): HeaderList {
    return new HeaderList([...this.raw, name, value])
  }
}

const hopByHop = new Set([
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
 * Without what concerns one connection only (RFC 9110 section 7.6.1): the known fields, and those
 * that Connection names. Authorization is for the API server whatever Connection says: left out,
 * what the API server says of anybody would be taken for what it says of a token.
 */
export function endToEnd(headers: HeaderList): HeaderList {
  const connection = headers.all('connection')
  if (connection.length === 0) return headers.without((name) => hopByHop.has(name))
  const named = new Set(
    connection.flatMap((value) => value.split(',').map((name) => name.trim().toLowerCase())),
  )
  named.delete('authorization')
  return headers.without((name) => hopByHop.has(name) || named.has(name))
}

/**
 * Whether they came from an API server, which gives each of its answers an Audit-Id (apiserver
 * pkg/endpoints/filters/audit_init.go); gateways do not.
 */
export const isFromApiServer = (headers: HeaderList): boolean =>
  headers.get('audit-id') !== undefined

/** Whether a caller asks to be taken for somebody else, which only the API server can grant. */
export const impersonates = (headers: HeaderList): boolean =>
  headers.raw.some((field, i) => i % 2 === 0 && /^impersonate-/i.test(field))
