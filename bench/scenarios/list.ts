import { gunzipSync } from 'node:zlib'
import { readList } from '../load/list-body.ts'
import { listSlack } from '../load/read-load.ts'
import { costOf } from '../measure/cost.ts'
import type { Metric } from '../measure/row.ts'
import type { RunningPeer } from '../peers/peer.ts'
import { podCount, podsOfNode } from '../upstream/seed.ts'
import { json, protobuf, recorded } from './callers.ts'
import { listMetrics, listSample } from './list-figures.ts'
import { warmSeconds, type Scenario, type Setting } from './scenario.ts'

const metrics = listMetrics('first byte ms')

/** Whether it was compressed is to be seen. */
const compressedMetrics: readonly Metric[] = [
  ...metrics,
  { key: 'size', title: 'body kB', digits: 0 },
]

/** As a kubelet's reflector lists. */
const path = `${podsOfNode}&limit=500&resourceVersion=0`

/** Other digits in the version are other bytes in all of a compressed list. */
const compressedSlack = 512

/**
 * Lists of all pods of the node, one at a time. Each has to be as long as one whose items were
 * counted.
 */
function lists(
  row: Pick<Scenario, 'name' | 'title' | 'needs'>,
  mediaType: string,
  compression?: 'gzip',
): Scenario {
  const headers = {
    ...recorded,
    Accept: mediaType,
    ...(compression && { 'Accept-Encoding': compression }),
  }
  /** How long a whole list is, as each peer gives it. */
  const bytes = new Map<string, number>()
  const bytesOf = async ({ name, target }: RunningPeer, { load }: Setting): Promise<number> => {
    const known = bytes.get(name)
    if (known !== undefined) return known
    const { status, body } = await load.run('fetchOnce', { target, path, headers })
    const { items } = status === 200 ? readList(mediaType, plain(body)) : { items: 0 }
    if (items !== podCount)
      throw new Error(`${name}: a list of ${items} instead of ${podCount} pods, status ${status}`)
    bytes.set(name, body.length)
    return body.length
  }
  const ask = async (peer: RunningPeer, setting: Setting, seconds: number) =>
    setting.load.run('read', {
      target: peer.target,
      headers,
      paths: [path],
      bytes: [await bytesOf(peer, setting)],
      slack: compression ? compressedSlack : listSlack,
      connections: 1,
      seconds,
    })
  return {
    ...row,
    metrics: compression ? compressedMetrics : metrics,
    async prime(peer, setting) {
      await ask(peer, setting, warmSeconds(setting))
      // Offline it may be written otherwise, and is counted again.
      if (row.needs === 'offline' && peer.whenOffline) bytes.delete(peer.name)
    },
    async measure(peer, setting) {
      const size = await bytesOf(peer, setting)
      const { result, cost } = await costOf(peer.processId, () =>
        ask(peer, setting, setting.seconds),
      )
      const sample = listSample(result, cost)
      return { ...sample, figures: { ...sample.figures, size: size / 1000 } }
    },
  }
}

/** A proxy may leave a list as it is although it was asked to compress it. */
const plain = (body: Uint8Array): Uint8Array =>
  body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body

export const listJson = lists(
  { name: 'list-json', title: 'LIST 500 pods in JSON, as a kubelet', needs: 'online' },
  json,
)

export const listProtobuf = lists(
  { name: 'list-protobuf', title: 'LIST 500 pods in protobuf, as a kubelet', needs: 'online' },
  protobuf,
)

export const listGzip = lists(
  { name: 'list-gzip', title: 'LIST 500 pods in JSON, gzip asked for', needs: 'online' },
  json,
  'gzip',
)

export const offlineListJson = lists(
  { name: 'offline-list-json', title: 'LIST 500 pods in JSON, API server gone', needs: 'offline' },
  json,
)

export const offlineListProtobuf = lists(
  {
    name: 'offline-list-protobuf',
    title: 'LIST 500 pods in protobuf, API server gone',
    needs: 'offline',
  },
  protobuf,
)
