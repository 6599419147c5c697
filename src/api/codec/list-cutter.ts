import type { Encoding, Projection } from '../kube/media-type.ts'
import type { ListCutter } from './cut.ts'
import { JsonListCutter } from './json/list-cutter.ts'
import { ProtobufListCutter } from './protobuf/list-cutter.ts'

export type { Cut, CutEnd, ListCutter, ListHead } from './cut.ts'

/** A cutter for one body. Table exists in JSON only. */
export const listCutter = (encoding: Encoding, projection: Projection): ListCutter =>
  encoding === 'json' ? new JsonListCutter(projection) : new ProtobufListCutter()
