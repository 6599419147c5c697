import type { HeaderList } from './headers.ts'

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
