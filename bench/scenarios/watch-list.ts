import type { Target } from '../load/target.ts'
import { costOf } from '../measure/cost.ts'
import { isOffline } from '../peers/peer.ts'
import { seedMany, servicesOf } from '../upstream/services.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, protobufWatch, recorded } from './callers.ts'
import { listMetrics, listSample } from './list-figures.ts'
import { type Scenario, warmSeconds } from './scenario.ts'

interface Collection {
  readonly path: string
  /** Absent: it is watched from its version on. */
  readonly objects?: (pods: readonly string[]) => number
  /** Makes them, where they are not there from the start. */
  readonly seed?: (admin: Target) => Promise<void>
}

const ofNode: Collection = { path: podsOfNode, objects: (pods) => pods.length }

/** WatchLists as a kubelet of 1.35 begins with, up to the bookmark that closes them. */
function watchLists(
  row: Pick<Scenario, 'name' | 'title'>,
  { path, objects, seed }: Collection,
  mediaType: string,
): Scenario {
  const wanted = (pods: readonly string[]) => (objects ? { objects: objects(pods) } : {})
  const headers = { ...recorded, Accept: mediaType }
  return {
    ...row,
    needs: 'offline',
    metrics: listMetrics('head ms'),
    takes: isOffline,
    async prime({ target }, setting) {
      const { load, admin, pods } = setting
      await seed?.(admin)
      const { failures } = await load.run('watchList', {
        target,
        path,
        headers,
        ...wanted(pods),
        seconds: warmSeconds(setting),
      })
      const [failure] = Object.keys(failures)
      if (failure !== undefined) throw new Error(failure)
    },
    async measure({ processId, target }, { load, pods, seconds }) {
      const { result, cost } = await costOf(processId, () =>
        load.run('watchList', { target, path, headers, ...wanted(pods), seconds }),
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
  ofNode,
  json,
)

export const offlineWatchListProtobuf = watchLists(
  {
    name: 'offline-watchlist-protobuf',
    title: 'WatchList of 500 pods in protobuf, API server gone',
  },
  ofNode,
  protobufWatch,
)

export const offlineWatchListMany = (count: number): Scenario =>
  watchLists(
    {
      name: `offline-watchlist-${count}`,
      title: `WatchList of ${count.toLocaleString('en-US')} services in JSON, API server gone`,
    },
    { path: servicesOf(count), objects: () => count, seed: (admin) => seedMany(admin, count) },
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
