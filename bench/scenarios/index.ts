import { bigList } from './big-list.ts'
import { crowd } from './crowd.ts'
import { fanOut50, fanOut1000 } from './fan-out.ts'
import { filteredListRows } from './filtered-list.ts'
import { filteredWatchRows } from './filtered-watch.ts'
import { getPassed, getRecorded, offlineGet } from './get.ts'
import { listGzip, listJson, listProtobuf, offlineListJson, offlineListProtobuf } from './list.ts'
import { disk, slowDisk } from './disk.ts'
import { frozen, killed } from './outage.ts'
import type { Scenario } from './scenario.ts'
import { tlsGet, tlsList } from './tls.ts'
import {
  offlineWatch,
  offlineWatchListJson,
  offlineWatchListMany,
  offlineWatchListProtobuf,
} from './watch-list.ts'
import { watchJson, watchProtobuf } from './watch.ts'

/** In the order in which they are shown. */
export const scenarios: readonly Scenario[] = [
  getPassed,
  getRecorded,
  listJson,
  listProtobuf,
  listGzip,
  bigList,
  watchJson,
  watchProtobuf,
  ...filteredListRows,
  ...filteredWatchRows,
  crowd,
  fanOut50,
  fanOut1000,
  disk,
  slowDisk,
  tlsGet,
  tlsList,
  frozen,
  killed,
  offlineListJson,
  offlineListProtobuf,
  offlineGet,
  offlineWatch,
  offlineWatchListJson,
  offlineWatchListProtobuf,
  offlineWatchListMany,
]
