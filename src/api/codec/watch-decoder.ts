import type { Encoding, Projection } from '../kube/media-type.ts'
import type { WatchDecoder } from './decoder.ts'
import type { WatchEvent } from './watch.ts'
import { JsonWatchDecoder } from './json/watch-decoder.ts'
import { ProtobufWatchDecoder } from './protobuf/watch-decoder.ts'

export type { WatchDecoder } from './decoder.ts'

/** A decoder for one body, of whole objects or metadata. */
export const watchDecoder = (encoding: Encoding, projection: Projection): WatchDecoder =>
  encoding === 'json' ? new JsonWatchDecoder(projection) : new ProtobufWatchDecoder()

/** The events of a body of whole objects; those that one chunk completes come together. */
export async function* watchEvents(
  body: AsyncIterable<unknown>,
  encoding: Encoding,
): AsyncGenerator<readonly WatchEvent[]> {
  const cutter = watchDecoder(encoding, 'object')
  for await (const chunk of body) yield cutter.push(chunk as Buffer)
}
