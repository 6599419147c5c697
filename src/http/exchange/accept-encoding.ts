import type { HeaderList } from './headers.ts'

const acceptEncoding = 'accept-encoding'

/** The codings of Accept-Encoding that can be read here, as they were written. */
const readable = (headers: HeaderList): string[] =>
  headers
    .all(acceptEncoding)
    .flatMap((value) => value.split(',').map((coding) => coding.trim()))
    .filter((coding) => /^(gzip|identity)\s*(;|$)/i.test(coding))

/**
 * Whether a client takes answers compressed with gzip: where it says so by name, as API servers
 * read it.
 */
export const acceptsGzip = (headers: HeaderList): boolean =>
  readable(headers).some(
    (coding) => /^gzip/i.test(coding) && !/;\s*q=0(\.0*)?\s*(;|$)/i.test(coding),
  )

/** The same fields, asking for no coding but those a client takes and the hub can read. */
export function withReadableEncodings(headers: HeaderList): HeaderList {
  if (headers.get(acceptEncoding) === undefined) return headers
  const codings = readable(headers)
  const others = headers.without((name) => name === acceptEncoding)
  return codings.length === 0 ? others : others.with('Accept-Encoding', codings.join(', '))
}

/** The same fields, asking for gzip whatever else the client takes. */
export const withGzipOnly = (headers: HeaderList): HeaderList =>
  headers.without((name) => name === acceptEncoding).with('Accept-Encoding', 'gzip')
