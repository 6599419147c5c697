import { getPassed, getRecorded, offlineGet } from './get.ts'
import { listJson, listProtobuf, offlineListJson, offlineListProtobuf } from './list.ts'
import type { Scenario } from './scenario.ts'
import { watchJson, watchProtobuf } from './watch.ts'

/** In the order in which they are shown. */
export const scenarios: readonly Scenario[] = [
  getPassed,
  getRecorded,
  listJson,
  listProtobuf,
  watchJson,
  watchProtobuf,
  offlineListJson,
  offlineListProtobuf,
  offlineGet,
]
