/** The encodings that the hub reads. Answers in others pass through unrecorded. */
export type Encoding = 'json' | 'protobuf'

/**
 * The part of an object that an answer shows: all of it, its metadata (PartialObjectMetadata), or a
 * row for people (Table).
 */
export type Projection = 'object' | 'metadata' | 'table'

/** The media type of an encoding; watches in protobuf add `;stream=watch`. */
export const mediaType = (encoding: Encoding, stream = false): string =>
  encoding === 'json'
    ? 'application/json'
    : `application/vnd.kubernetes.protobuf${stream ? ';stream=watch' : ''}`

/** The encoding of a body by its Content-Type, ignoring parameters; `undefined` for others. */
export function encodingOf(contentType: string | undefined): Encoding | undefined {
  const [type] = (contentType ?? '').split(';')
  if (type === 'application/json') return 'json'
  return type === 'application/vnd.kubernetes.protobuf' ? 'protobuf' : undefined
}
