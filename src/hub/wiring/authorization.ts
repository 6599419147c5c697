import type { StartConfig } from '../../config/hub-config.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { RecordedReviews } from '../answers/recorded-reviews.ts'
import type { IsRelated } from '../authorization/node-authorizer.ts'
import { podRelations, relationsOf, type PodRelations } from '../authorization/node-relations.ts'
import { OfflineAuthorization } from '../authorization/offline-authorization.ts'
import type { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { ObjectStore } from '../store/store.ts'
import { knownToNode, podsVersion } from './needed.ts'
import type { ClusterPolicies } from './policies.ts'

interface AuthorizationParts {
  readonly config: StartConfig
  readonly reviews: RecordedReviews
  /** `undefined` where no policies are read. */
  readonly policies: () => ClusterPolicies | undefined
  readonly metrics: HubMetrics
}

/** Decides what callers may do while no API server can, by `--offline-authorization`. */
export const offlineAuthorizationOf = ({
  config,
  reviews,
  policies,
  metrics,
}: AuthorizationParts): OfflineAuthorization =>
  new OfflineAuthorization({
    mode: config.offlineAuthorization,
    nodeName: config.nodeName,
    recorded: reviews,
    policies: () => policies()?.authorizer,
    onDecision: (kind, result) => metrics.offlineDecisions.add({ kind, result }),
  })

/**
 * What the node is related to, by what its kubelet has read; pods are read again when they change.
 */
export function nodeRelations(
  { nodeName }: StartConfig,
  store: ObjectStore,
  access: AccessReviews,
): IsRelated {
  const cache = () => knownToNode(store, nodeName, access)
  let last: { readonly version: string; readonly pods: PodRelations | undefined } | undefined
  return relationsOf({
    nodeName,
    cache,
    pods: () => {
      const version = podsVersion(store, nodeName)
      if (last?.version !== version) last = { version, pods: podRelations(cache(), nodeName) }
      return last.pods
    },
  })
}
