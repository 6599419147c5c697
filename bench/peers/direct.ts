import type { Peer } from './peer.ts'

/**
 * The API server itself, with the node's client certificate: what every other peer stands before.
 */
export const direct: Peer = {
  name: 'direct',
  missing: () => undefined,
  start: ({ node, description }) => Promise.resolve({ name: 'direct', target: node, description }),
}
