import { allocated } from './allocated.ts'
import { bigList } from './big-list.ts'
import { crowd } from './crowd.ts'
import { fanOutRows } from './fan-out.ts'
import { filteredListRows } from './filtered-list.ts'
import { filteredWatchRows } from './filtered-watch.ts'
import { getPassed, getRecorded, offlineGet } from './get.ts'
import { growthRows } from './growth.ts'
import { kept } from './kept.ts'
import { listGzip, listJson, listProtobuf, offlineListJson, offlineListProtobuf } from './list.ts'
import { disk, slowDisk } from './disk.ts'
import { memoryAfter, memoryIdle } from './memory.ts'
import { frozen, killed } from './outage.ts'
import type { Scenario } from './scenario.ts'
import { fullSizes, type Sizes } from './sizes.ts'
import { startRows } from './start.ts'
import { tlsGet, tlsList } from './tls.ts'
import {
  offlineWatch,
  offlineWatchListJson,
  offlineWatchListMany,
  offlineWatchListProtobuf,
} from './watch-list.ts'
import { watchJson, watchProtobuf } from './watch.ts'

/** In the order in which they are measured: what makes many objects comes behind the others. */
export const rowsOf = (sizes: Sizes): readonly Scenario[] => [
  memoryIdle,
  getPassed,
  getRecorded,
  listJson,
  listProtobuf,
  listGzip,
  watchJson,
  watchProtobuf,
  crowd(sizes.crowd),
  ...fanOutRows(sizes.fanOut),
  tlsGet,
  tlsList,
  kept,
  allocated,
  disk,
  slowDisk,
  bigList(sizes.bigList),
  ...filteredListRows(sizes.filtered),
  ...filteredWatchRows,
  ...startRows(sizes.many),
  ...growthRows(sizes),
  frozen,
  killed,
  offlineListJson,
  offlineListProtobuf,
  offlineGet,
  offlineWatch,
  offlineWatchListJson,
  offlineWatchListProtobuf,
  offlineWatchListMany(sizes.many),
  memoryAfter,
]

export const scenarios = rowsOf(fullSizes)
