import { costOf } from '../measure/cost.ts'
import { manyCount, manyPath, seedMany } from '../upstream/services.ts'
import { podCount, podsOfNode } from '../upstream/seed.ts'
import { json, protobufWatch, recorded } from './callers.ts'
import { listMetrics, listSample } from './list-figures.ts'
import type { Scenario } from './scenario.ts'

interface Collection {
  readonly path: string
  /** Absent: it is watched from its version on. */
  readonly objects?: number
}

const pods: Collection = { path: podsOfNode, objects: podCount }
const services: Collection = { path: manyPath, objects: manyCount }

/** WatchLists as a kubelet of 1.35 begins with, up to the bookmark that closes them. */
function watchLists(
  row: Pick<Scenario, 'name' | 'title'>,
  { path, objects }: Collection,
  mediaType: string,
): Scenario {
  const wanted = objects === undefined ? {} : { objects }
  const headers = { ...recorded, Accept: mediaType }
  return {
    ...row,
    needs: 'offline',
    metrics: listMetrics('head ms'),
    async prime({ target }, { load, admin }) {
      if (path === manyPath) await seedMany(admin)
      const { failures } = await load.run('watchList', {
        target,
        path,
        headers,
        ...wanted,
        seconds: 1,
      })
      const [failure] = Object.keys(failures)
      if (failure !== undefined) throw new Error(failure)
    },
    async measure({ processId, target }, { load, seconds }) {
      const { result, cost } = await costOf(processId, () =>
        load.run('watchList', { target, path, headers, ...wanted, seconds }),
      )
      return listSample(result, cost)
    },
  }
}

export const offlineWatchListJson = watchLists(
  {
    name: 'offline-watchlist-json',
    title: 'WatchList of 500 pods in JSON, API server gone',
  },
  pods,
  json,
)

export const offlineWatchListProtobuf = watchLists(
  {
    name: 'offline-watchlist-protobuf',
    title: 'WatchList of 500 pods in protobuf, API server gone',
  },
  pods,
  protobufWatch,
)

export const offlineWatchListMany = watchLists(
  {
    name: 'offline-watchlist-5000',
    title: 'WatchList of 5,000 services in JSON, API server gone',
  },
  services,
  json,
)

export const offlineWatch = watchLists(
  {
    name: 'offline-watch',
    title: 'a watch of pods from its version to its head, in JSON, API server gone',
  },
  { path: podsOfNode },
  json,
)
