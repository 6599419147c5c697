import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ListDecoder } from './decoder.ts'
import { JsonListDecoder } from './json/list-decoder.ts'
import { ProtobufListDecoder } from './protobuf/list-decoder.ts'

export type { DecodedChunk, DecodedListEnd, ListDecoder, ListHead } from './decoder.ts'

/** A decoder for one body, of whole objects or metadata. */
export const listDecoder = (encoding: Encoding, projection: Projection): ListDecoder =>
  encoding === 'json' ? new JsonListDecoder(projection) : new ProtobufListDecoder()
