import { join } from 'node:path'
import type { Logger } from 'pino'
import { isAnsweredByBody } from '../../api/request/request-info.ts'
import type { StartConfig } from '../../config/hub-config.ts'
import type { Exchange } from '../../http/exchange/exchange.ts'
import { documentKeys } from '../answers/keys.ts'
import { RecordedDecisions } from '../authorization/recorded-decisions.ts'
import type { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { ObjectStore } from '../store/store.ts'

interface DecisionsParts {
  readonly access: AccessReviews
  readonly store: ObjectStore
  readonly log: Logger
}

/** The last decisions of API servers about callers' requests, which decide while none can. */
export const recordedDecisionsOf = (
  { rootDir }: StartConfig,
  { access, store, log }: DecisionsParts,
): RecordedDecisions =>
  new RecordedDecisions(join(rootDir, 'decisions.json'), {
    access,
    isCached: (exchange) => isCached(exchange, store, access),
    isKnown: (identities) => access.hasVerdictOf(identities) || store.holdsFor(identities),
    onClosed: (user, what) =>
      log.warn(
        { user, what },
        'more was denied to this caller than is recorded: offline it is answered 503 for all of this',
      ),
    onForgotten: (user) =>
      log.warn(
        { user },
        'more was denied to all callers than is recorded: the denials of this one are forgotten',
      ),
    onFailure: (err) =>
      log.error({ err }, 'cannot write decisions.json: a restart forgets later denials'),
  })

/** Whether anything is stored that the request, or another of its resource, is answered from. */
function isCached(exchange: Exchange, store: ObjectStore, access: AccessReviews): boolean {
  const { identity, info } = exchange
  if (!info.isResource) return documentKeys(exchange).some((key) => store.document(key))
  if (isAnsweredByBody(info)) return true
  if (info.subresource !== undefined) return false
  const { gvr } = info
  const isShared = access.last(identity, gvr) === true
  return isShared || store.holds(identity, gvr)
}
