import { accountOf, accountsNamed, type Identity } from '../../api/request/identity.ts'
import {
  changesNothing,
  isRelayed,
  isReview,
  isTokenRequest,
  namedBySelector,
  type ResourceRequest,
} from '../../api/request/request-info.ts'
import { isProven, type Exchange, type UpstreamReply } from '../../http/exchange/exchange.ts'
import { impersonates, isFromApiServer } from '../../http/exchange/headers.ts'
import { tablesOf } from '../answers/keys.ts'
import { reviewResource } from '../answers/recorded-reviews.ts'
import type { ObjectStore, Withdrawal } from '../store/store.ts'
import { documentResource } from '../store/document.ts'
import { tokenResource } from '../store/token-name.ts'

interface WithdrawnRightsParts {
  readonly store: Pick<ObjectStore, 'withdraw'>
  /** The removal is not on the disk: a restart may bring the answers back. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * What is recorded for a caller with a token is an API server's yes of that time; a 403 takes it
 * back. To be called with the 403 before it is passed on: the store then no longer gives the caller
 * what it may not have, the object, for a get of it, or the lists that have the refused one, for a
 * list or watch.
 */
export const withdrawingRights =
  ({ store, onFailure }: WithdrawnRightsParts) =>
  async (exchange: Exchange, { headers, isStarting }: UpstreamReply): Promise<void> => {
    // An answer of a pod, or to another user, is no decision about this one.
    if (exchange.credential !== 'caller' || !isProven(exchange)) return
    if (!changesNothing(exchange) || isRelayed(exchange.info)) return
    if (impersonates(exchange.headers) || isStarting || !isFromApiServer(headers)) return
    const { identity, info } = exchange
    const holders = holdersOf(identity)
    const withdrawals: readonly Withdrawal[] = info.isResource
      ? withdrawalsOf(info)
      : [{ of: 'objects', gvr: documentResource, namespace: '', name: info.path }]
    await Promise.all(withdrawals.map((each) => store.withdraw(holders, each))).catch(onFailure)
  }

/** A service account is one caller, whichever its uid: its rights are given to its name. */
function holdersOf(identity: Identity): string {
  const account = accountOf(identity)
  return account ? accountsNamed(account) : identity
}

const isCollection = ({ verb, subresource }: ResourceRequest): boolean =>
  (verb === 'list' || verb === 'watch') && subresource === undefined

function withdrawalsOf(info: ResourceRequest): readonly Withdrawal[] {
  const namespace = info.namespace ?? ''
  if (isTokenRequest(info)) return [{ of: 'objects', gvr: tokenResource, namespace }]
  if (isReview(info)) return [{ of: 'objects', gvr: reviewResource, namespace: '' }]
  const { gvr, name, subresource } = info
  if (subresource !== undefined) return []
  const tables: Withdrawal = { of: 'objects', gvr: tablesOf(gvr), namespace: '' }
  if (isCollection(info))
    return [{ of: 'collections', gvr, namespace, ...named(name ?? namedBySelector(info)) }, tables]
  return [{ of: 'objects', gvr, namespace, ...named(name) }, tables]
}

const named = (name: string | undefined): { readonly name?: string } =>
  name === undefined ? {} : { name }
