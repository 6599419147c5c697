import type { Encoding, Shape } from '../kube/media-type.ts'
import type { WatchCutter } from './cut.ts'
import { JsonWatchCutter } from './json/watch-cutter.ts'
import { ProtobufWatchCutter } from './protobuf/watch-cutter.ts'

export type { WatchCutter } from './cut.ts'

/** A cutter for one body. Table exists in JSON only. */
export const watchCutter = (encoding: Encoding, shape: Shape): WatchCutter =>
  encoding === 'json' ? new JsonWatchCutter(shape) : new ProtobufWatchCutter()
