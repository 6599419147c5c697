import type { Encoding, Projection } from '../kube/media-type.ts'
import type { WatchCutter } from './cut.ts'
import type { WatchEvent } from './watch.ts'
import { JsonWatchCutter } from './json/watch-cutter.ts'
import { ProtobufWatchCutter } from './protobuf/watch-cutter.ts'

export type { WatchCutter } from './cut.ts'

/** A cutter for one body. Table exists in JSON only. */
export const watchCutter = (encoding: Encoding, projection: Projection): WatchCutter =>
  encoding === 'json' ? new JsonWatchCutter(projection) : new ProtobufWatchCutter()

/** The events of a body as it comes, those of a chunk together; of whole objects. */
export async function* watchEvents(
  body: AsyncIterable<unknown>,
  encoding: Encoding,
): AsyncGenerator<readonly WatchEvent[]> {
  const cutter = watchCutter(encoding, 'object')
  for await (const chunk of body) yield cutter.push(chunk as Buffer)
}
