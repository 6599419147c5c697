import { jitter } from '../../../base/clock.ts'
import { minWatchMs } from '../../../api/codec/watch.ts'
import type { Exchange } from '../../../http/exchange/exchange.ts'
import { nodeIdentity } from '../../../api/request/identity.ts'
import type { ResourceRequest } from '../../../api/request/request-info.ts'

/**
 * The ranks in which watches go back to the cloud, each with the time that is between its beginning
 * and the next one's.
 */
const ranks = [
  { name: 'node', spreadMs: 200 },
  { name: 'references', spreadMs: 500 },
  { name: 'endpoints', spreadMs: 300 },
  { name: 'rest', spreadMs: 500 },
  { name: 'people', spreadMs: 300 },
] as const

export type ReconnectRank = (typeof ranks)[number]['name']

const ofNode = new Set(['nodes', 'pods'])
const references = new Set(['secrets', 'configmaps'])
const endpoints = new Set(['services', 'endpointslices', 'endpoints'])

/**
 * How soon a watch is to learn what the cloud has changed: first the node's own node and pods, then
 * what its pods refer to, then where their traffic goes, then all else, and at last people, who can
 * ask again.
 */
export function reconnectRank(
  { component, identity }: Exchange,
  { gvr }: ResourceRequest,
): ReconnectRank {
  if (component === 'kubectl') return 'people'
  if (component === 'kubelet' && identity === nodeIdentity && gvr.group === '') {
    if (ofNode.has(gvr.resource)) return 'node'
    if (references.has(gvr.resource)) return 'references'
  }
  return endpoints.has(gvr.resource) ? 'endpoints' : 'rest'
}

/**
 * After how many milliseconds a watch ends that has lasted for `lastedMs` when the cloud is back:
 * in the order of its rank and at random within it, so that they do not all come to the cloud at
 * once; but none so soon that its client takes it for a failure and lists again.
 */
export const endDelayMs = (rank: ReconnectRank, lastedMs: number): number =>
  Math.max(resumeDelayMs(rank), minWatchMs - lastedMs)

/** After how many milliseconds an upstream watch resumes then, in the same order. */
export function resumeDelayMs(rank: ReconnectRank): number {
  let from = 0
  for (const { name, spreadMs } of ranks) {
    if (name === rank) return jitter(from, from + spreadMs)
    from += spreadMs
  }
  return from
}
