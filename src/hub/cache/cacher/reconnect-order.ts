import { jitter } from '../../../base/clock.ts'
import { minWatchMs } from '../../../api/codec/watch.ts'
import type { Exchange } from '../../../http/exchange/exchange.ts'
import { nodeIdentity } from '../../../api/request/identity.ts'
import type { ResourceRequest } from '../../../api/request/request-info.ts'

/**
 * The ranks in which watches reconnect after an outage; each takes `spreadMs` before the next
 * begins.
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
 * The rank of a watch: first the node's own Node and pods, then the objects its pods refer to, then
 * Services and endpoints, then the rest, and last people, who can retry by hand.
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
 * The delay in ms after which a watch that has lasted for `lastedMs` ends when the hub is online
 * again: in the order of ranks and at random within one, so that the watches do not all reconnect
 * at once; but never so soon that the client takes it for a failure and lists again.
 */
export const endDelayMs = (rank: ReconnectRank, lastedMs: number): number =>
  Math.max(resumeDelayMs(rank), minWatchMs - lastedMs)

/** The delay in ms after which an upstream watch resumes then, in the same order. */
export function resumeDelayMs(rank: ReconnectRank): number {
  let from = 0
  for (const { name, spreadMs } of ranks) {
    if (name === rank) return jitter(from, from + spreadMs)
    from += spreadMs
  }
  return from
}
