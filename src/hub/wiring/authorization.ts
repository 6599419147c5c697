import { join } from 'node:path'
import type { Logger } from 'pino'
import { isAnsweredByBody } from '../../api/request/request-info.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { HubMetrics } from '../../metrics/metrics.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { documentKeys } from '../answers/keys.ts'
import type { RecordedReviews } from '../answers/recorded-reviews.ts'
import type { IsRelated } from '../authorization/node-authorizer.ts'
import { podRelations, relationsOf, type PodRelations } from '../authorization/node-relations.ts'
import { OfflineAuthorization } from '../authorization/offline-authorization.ts'
import { RecordedDecisions } from '../authorization/recorded-decisions.ts'
import type { PodReferencesByVersion } from '../boot/pod-references.ts'
import type { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { ObjectStore } from '../store/store.ts'
import { knownToNode, podsVersion } from './needed.ts'
import { ClusterPolicies } from './policies.ts'

interface DecisionsParts {
  readonly access: AccessReviews
  readonly store: ObjectStore
  readonly log: Logger
}

/**
 * The last decisions of API servers about callers' requests; `undefined` with `off`. They decide
 * reviews and, with `decisions`, answers from the cache.
 */
export const recordedDecisionsOf = (
  { offlineAuthorization, rootDir }: StartConfig,
  { access, store, log }: DecisionsParts,
): RecordedDecisions | undefined =>
  offlineAuthorization !== 'off'
    ? new RecordedDecisions(join(rootDir, 'decisions.json'), {
        access,
        isCached: (exchange) => isCached(exchange, store, access),
        isKnown: (identities) => access.hasVerdictOf(identities) || store.holdsFor(identities),
        onClosed: (user, what) =>
          log.warn(
            { user, what },
            offlineAuthorization === 'decisions'
              ? 'more was denied to this caller than is recorded: offline it is answered 503 for all of this'
              : 'more was denied to this caller than is recorded: a review of this is not answered by records',
          ),
        onForgotten: (user) =>
          log.warn(
            { user },
            'more was denied to all callers than is recorded: the denials of this one are forgotten',
          ),
        onFailure: (err) =>
          log.error({ err }, 'cannot write decisions.json: a restart forgets later denials'),
      })
    : undefined

/** Whether anything is stored that the request, or another of its resource, is answered from. */
function isCached(exchange: Exchange, store: ObjectStore, access: AccessReviews): boolean {
  const { identity, info } = exchange
  if (!info.isResource) return documentKeys(exchange).some((key) => store.document(key))
  if (isAnsweredByBody(info)) return true
  if (info.subresource !== undefined) return false
  const { gvr } = info
  const isShared = access.last(identity, gvr) === true
  return isShared || store.observedVersion(identity, gvr) !== undefined
}

/** The cluster's policies, which decide with `rbac`; `undefined`: they do not. */
export const clusterPoliciesOf = (
  config: StartConfig,
  { log, ...records }: DecisionsParts & RelationsParts,
): ClusterPolicies | undefined =>
  config.offlineAuthorization === 'rbac'
    ? new ClusterPolicies({
        rootDir: config.rootDir,
        store: records.store,
        isRelated: nodeRelations(config, records),
        log,
      })
    : undefined

interface AuthorizationParts {
  readonly config: StartConfig
  readonly store: ObjectStore
  readonly reviews: RecordedReviews
  readonly decisions: RecordedDecisions | undefined
  /** `undefined` where no policies are read. */
  readonly policies: ClusterPolicies | undefined
  readonly metrics: HubMetrics
}

/** Decides about callers' rights while no API server can, by `--offline-authorization`. */
export const offlineAuthorizationOf = ({
  config,
  store,
  reviews,
  decisions,
  policies,
  metrics,
}: AuthorizationParts): OfflineAuthorization =>
  new OfflineAuthorization({
    mode: config.offlineAuthorization,
    nodeName: config.nodeName,
    recorded: reviews,
    decisions,
    store,
    policies: () => policies?.authorizer,
    onDecision: (kind, result) => metrics.offlineDecisions.add({ kind, result }),
  })

interface RelationsParts {
  readonly store: ObjectStore
  readonly access: AccessReviews
  readonly references: PodReferencesByVersion
}

/**
 * The relations of the node to objects, by the records of its kubelet; pods are read again when
 * they change.
 */
function nodeRelations(
  { nodeName }: StartConfig,
  { store, access, references }: RelationsParts,
): IsRelated {
  const cache = () => knownToNode(store, nodeName, access)
  let last: { readonly version: string; readonly pods: PodRelations | undefined } | undefined
  return relationsOf({
    nodeName,
    cache,
    pods: () => {
      const version = podsVersion(store, nodeName)
      if (last?.version !== version) {
        last = { version, pods: podRelations({ nodeName, cache: cache(), references }) }
      }
      return last.pods
    },
  })
}
