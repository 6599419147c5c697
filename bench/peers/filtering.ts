import type { Workspace } from '../../test/kit/cluster/workspace.ts'
import { filteringNode } from '../upstream/filtered.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { startHub } from './hub.ts'
import type { RunningPeer } from './peer.ts'

/** A hub of its own, which has not seen anything yet; disposing of it ends its process. */
export interface FilteringHub extends AsyncDisposable {
  readonly peer: RunningPeer
}

/**
 * Starts hubs of a node in a host-network pool, each with a cache of its own, so that the first
 * look at an object is the first.
 */
export function filteringHubs(
  upstream: Upstream,
  workspace: Workspace,
): () => Promise<FilteringHub> {
  let started = 0
  return async () => {
    const name = `hub-filtering-${++started}`
    const flags = [
      `--node-name=${filteringNode}`,
      '--host-network-propagation=on',
      '--plain-proxy=true',
    ]
    // An API server lets no node read another's Node, nor endpoint slices.
    const all = { ...upstream, kubeconfig: upstream.adminKubeconfig }
    const peer = await startHub(all, workspace, name, { flags })
    return { peer, [Symbol.asyncDispose]: async () => peer.stop?.() }
  }
}
