/** The encodings this product reads. Others pass through and are never recorded. */
export type Encoding = 'json' | 'protobuf'

/**
 * The whole object in an answer, its metadata only (PartialObjectMetadata), or rows for people to
 * read (Table).
 */
export type Projection = 'object' | 'metadata' | 'table'

/** The media type of bytes in an encoding; watches of protobuf add `;stream=watch`. */
export const mediaType = (encoding: Encoding, stream = false): string =>
  encoding === 'json'
    ? 'application/json'
    : `application/vnd.kubernetes.protobuf${stream ? ';stream=watch' : ''}`

/**
 * The reverse: the encoding of a body by its Content-Type, whatever its parameters; `undefined`
 * where it is none that is read here.
 */
export function encodingOf(contentType: string | undefined): Encoding | undefined {
  const [type] = (contentType ?? '').split(';')
  if (type === 'application/json') return 'json'
  return type === 'application/vnd.kubernetes.protobuf' ? 'protobuf' : undefined
}
