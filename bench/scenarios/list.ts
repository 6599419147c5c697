import { gunzipSync } from 'node:zlib'
import { readList } from '../load/list-body.ts'
import { listSlack } from '../load/read-load.ts'
import { costOf } from '../measure/cost.ts'
import type { Metric } from '../measure/row.ts'
import { isOffline, isOfFew, type RunningPeer } from '../peers/peer.ts'
import { podsOfNode } from '../upstream/seed.ts'
import { json, protobuf, recorded } from './callers.ts'
import { listMetrics, listSample, type ListAims } from './list-figures.ts'
import { warmSeconds, type Scenario, type Setting } from './scenario.ts'

/** Whether it was compressed is to be seen. */
const bodySize: Metric = { key: 'size', title: 'body kB', digits: 0 }

const online: ListAims = {
  time: [{ most: 1.2, to: 'direct' }],
  firstByte: [{ most: 2, to: 'direct' }],
  cpu: [{ most: 2, to: 'haproxy-http' }],
}

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
  aims: ListAims,
  compression?: 'gzip',
): Scenario {
  const metrics = listMetrics('first byte ms', aims)
  const headers = {
    ...recorded,
    Accept: mediaType,
    ...(compression && { 'Accept-Encoding': compression }),
  }
  /** How long a whole list is, as each peer gives it. */
  const bytes = new Map<string, number>()
  const bytesOf = async (
    { name, target }: RunningPeer,
    { load, pods }: Setting,
  ): Promise<number> => {
    const known = bytes.get(name)
    if (known !== undefined) return known
    const { status, body } = await load.run('fetchOnce', { target, path, headers })
    const { items } = status === 200 ? readList(mediaType, plain(body)) : { items: 0 }
    if (items !== pods.length)
      throw new Error(
        `${name}: a list of ${items} instead of ${pods.length} pods, status ${status}`,
      )
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
    metrics: compression ? [...metrics, bodySize] : metrics,
    ...((compression || row.needs === 'offline') && {
      takes: row.needs === 'offline' ? isOffline : isOfFew,
    }),
    async prime(peer, setting) {
      await ask(peer, setting, warmSeconds(setting))
      // Offline it may be written otherwise, and is counted again.
      if (row.needs === 'offline' && peer.whenOffline) bytes.delete(peer.name)
    },
    async measure(peer, setting) {
      // What was written since it was primed is compressed to another length.
      if (compression) bytes.delete(peer.name)
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
  online,
)

export const listProtobuf = lists(
  { name: 'list-protobuf', title: 'LIST 500 pods in protobuf, as a kubelet', needs: 'online' },
  protobuf,
  online,
)

export const listGzip = lists(
  { name: 'list-gzip', title: 'LIST 500 pods in JSON, gzip asked for', needs: 'online' },
  json,
  {},
  'gzip',
)

export const offlineListJson = lists(
  { name: 'offline-list-json', title: 'LIST 500 pods in JSON, API server gone', needs: 'offline' },
  json,
  { time: [{ most: 1.5 }] },
)

export const offlineListProtobuf = lists(
  {
    name: 'offline-list-protobuf',
    title: 'LIST 500 pods in protobuf, API server gone',
    needs: 'offline',
  },
  protobuf,
  { time: [{ most: 1.5 }] },
)
