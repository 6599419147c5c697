/** The encodings this product reads. Others pass through and are never recorded. */
export type Encoding = 'json' | 'protobuf'

/** The whole object in an answer, its metadata only (PartialObjectMetadata), or rows for people to read (Table). */
export type Shape = 'object' | 'metadata' | 'table'

/** The media type of bytes in an encoding; watches of protobuf add `;stream=watch`. */
export const mediaType = (encoding: Encoding, stream = false): string =>
  encoding === 'json'
    ? 'application/json'
    : `application/vnd.kubernetes.protobuf${stream ? ';stream=watch' : ''}`
