import { elapsed, now } from '../../base/clock.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import { canonicalSpec, type Review } from '../../api/codec/review.ts'
import { qualifiedResource } from '../../api/kube/gvk.ts'
import { isList, isObject, parseJson } from '../../api/kube/json.ts'
import { textAt } from '../../api/kube/json-at.ts'
import { MalformedSelector } from '../../api/kube/selectors.ts'
import { accountOf, accountsNamed, type Identity } from '../../api/request/identity.ts'
import {
  changesNothing,
  isRelayed,
  isWatch,
  type ResourceRequest,
} from '../../api/request/request-info.ts'
import type { BytesReply, Exchange } from '../../http/exchange/exchange.ts'
import { impersonates, isFromApiServer } from '../../http/exchange/headers.ts'
import { isProven } from '../../http/exchange/proven.ts'
import { selectorsOf } from '../answers/keys.ts'
import type { AccessReviews } from '../cache/shared/access-reviews.ts'
import type { CollectionKey } from '../store/store.ts'
import type { Forward } from '../upstream/forward.ts'
import type { Upgrade } from '../upstream/upgrade.ts'
import type { Attributes, ResourceAttributes, UserInfo } from './attributes.ts'
import { attributesOf, groupsOfAccount } from './requests.ts'
import { questionOf } from './review.ts'
import {
  everything,
  ScopedDecisions,
  type Refusal,
  type Scope,
  type ScopedDecision,
} from './scoped-decisions.ts'

/**
 * The denials of one user that are remembered one by one. Beyond that, the hub refuses every
 * request with the verb and the resource of a further denial, if any of its objects is cached.
 */
export const mostOfUser = 256

/**
 * The decisions that are remembered in all. Beyond them the hub refuses, of the user with most, all
 * requests with the verbs and resources of that user's denials, in place of these.
 */
export const mostDecisions = 4_096

/** A denial counts once for each begun part of so many characters. */
export const charactersOfDecision = 256

/** A longer request is not remembered: the cache has no record that could answer it. */
export const longestRequest = 6_144

/** Of one user, by verb and resource. */
type DecisionsOfUser = ReadonlyMap<string, ScopedDecisions>

/** The action that a decision is about, and the user. */
interface Subject {
  readonly user: string
  readonly attributes: Attributes
  readonly scope: Scope
}

interface Noted extends Subject {
  readonly isAllowed: boolean
  /** When the request was sent, by the monotonic clock. */
  readonly sentAt: number
  /** Called where there is no more room for this user. */
  readonly isCached: () => boolean
}

interface RecordedDecisionsParts {
  readonly access: Pick<AccessReviews, 'refused' | 'allowed'>
  /** Whether the store could answer the request, or another one for its resource. */
  readonly isCached: (exchange: Exchange) => boolean
  /** Whether anything is stored for a service account whose identities begin so. */
  readonly isKnown: (identities: string) => boolean
  /** From now on the hub refuses all requests with the verb and the resource of `what`. */
  readonly onClosed: (user: string, what: string) => void
  /** The denials of this user are forgotten, as those of others take all the room. */
  readonly onForgotten: (user: string) => void
  /** The file could not be written. */
  readonly onFailure: (cause: unknown) => void
}

/**
 * The requests that API servers have denied callers with tokens, and have not allowed since, from
 * their answers to the callers' own requests and to reviews of their rights. A decision is on the
 * disk, in `file`, before the answer that has it is passed on. Disposing waits until it is written.
 */
export class RecordedDecisions implements AsyncDisposable {
  readonly #file: StateFile
  readonly #parts: RecordedDecisionsParts
  /** Those whose decisions changed longest ago come first. */
  readonly #users = new Map<string, DecisionsOfUser>()

  constructor(file: string, parts: RecordedDecisionsParts) {
    this.#parts = parts
    this.#file = new StateFile(file, () => JSON.stringify(this.#entries()))
    for (const [user, decisions] of storedEntries(file, isEntry)) {
      this.#users.set(user, new Map(decisions.map(fromEntry)))
    }
    this.#makeRoom()
    parts.access.allowed.listen((who, { group, resource }, begunAt) => {
      for (const verb of ['list', 'watch'])
        void this.#note({
          user: userNameOf(who),
          attributes: { ...wholeOf(group, resource), verb },
          scope: everything,
          isAllowed: true,
          sentAt: begunAt,
          isCached: () => false,
        })
    })
  }

  /** The same forwarder; notes the decisions in its answers to callers with tokens. */
  heeding(forward: Forward): Forward {
    const heeded: Forward = async (exchange, options) => {
      const sentAt = elapsed()
      const reply = await forward(exchange, options)
      await this.#onAnswer(exchange, reply, sentAt)
      return reply
    }
    return (exchange, options) =>
      (exchange.credential === 'caller' ? heeded : forward)(exchange, options)
  }

  /**
   * The same upgrader; notes the decisions about watches of callers with tokens. A refusal is
   * passed on meanwhile.
   */
  heedingUpgrades(upgrade: Upgrade): Upgrade {
    return async (exchange) => {
      const sentAt = elapsed()
      const reply = await upgrade(exchange)
      if (exchange.credential === 'caller' && isWatch(exchange.info))
        void reply.finalHead
          ?.then((head) => this.#onAnswer(exchange, head, sentAt))
          .catch(this.#parts.onFailure)
      return reply
    }
  }

  #onAnswer(
    exchange: Exchange,
    { status, headers, isStarting }: Pick<BytesReply, 'status' | 'headers' | 'isStarting'>,
    sentAt: number,
  ): Promise<void> | undefined {
    // An object that is not there, and a version that has expired, are no matter of rights.
    const isAllowed = status < 400 || status === 404 || status === 410
    if (status !== 403 && (!isAllowed || this.#users.size === 0)) return undefined
    // An answer of a pod, or to another user, is no decision about this one.
    if (!changesNothing(exchange) || isRelayed(exchange.info)) return undefined
    if (impersonates(exchange.headers) || !isProven(exchange)) return undefined
    // API servers answer 101 without their own fields.
    if (isStarting || (status !== 101 && !isFromApiServer(headers))) return undefined
    const attributes = attributesOf(exchange)
    const scope = requestScope(exchange, attributes)
    const isCached = (): boolean => this.#parts.isCached(exchange)
    const user = userNameOf(exchange.identity)
    return this.#note({ user, attributes, scope, isAllowed, sentAt, isCached })
  }

  /**
   * An API server has answered an access review: about its sender, or about a service account by
   * its name and groups, to a request that was sent at `sentAt` by the monotonic clock. Resolves
   * when it is on the disk.
   */
  onReview(exchange: Exchange, review: Review, sentAt: number): Promise<void> | undefined {
    const about = subjectOf(exchange, review)
    const isAllowed = review.status['allowed'] === true
    // An authorizer that failed has denied nothing.
    if (!isAllowed && textAt(review.status, 'evaluationError') !== '') return undefined
    // With a selector an authorizer may decide otherwise than without.
    if (!about || about.scope.selectors !== '') return undefined
    // A member that the hub does not know may narrow what is allowed.
    if (isAllowed && canonicalSpec(review) === undefined) return undefined
    const isOwn = review.kind === 'SelfSubjectAccessReview'
    // Denials of invented accounts must not displace others.
    if (!isAllowed && !isOwn && !this.#parts.isKnown(identitiesOf(about.user))) return undefined
    return this.#note({ ...about, isAllowed, sentAt, isCached: () => false })
  }

  /** The denial that contradicts a yes to such a review; `undefined`: there is none. */
  refusalInReview(exchange: Exchange, review: Review): Refusal | undefined {
    const about = subjectOf(exchange, review)
    if (!about) return undefined
    const key = keyOf(about.attributes)
    if (isTooLong(key, about.scope)) return { kind: 'closed' }
    const refusal = this.#users.get(about.user)?.get(key)?.refusal(about.scope)
    return refusal && about.scope.selectors !== '' ? { kind: 'closed' } : refusal
  }

  /** The denial that applies to the request; `undefined`: there is none. */
  refusal(exchange: Exchange): Refusal | undefined {
    if (this.#users.size === 0) return undefined
    const attributes = attributesOf(exchange)
    const decisions = this.#users.get(userNameOf(exchange.identity))?.get(keyOf(attributes))
    return decisions?.refusal(requestScope(exchange, attributes))
  }

  /**
   * Which lists of the requested resource are refused; `undefined`: none was denied, which is known
   * at once.
   */
  refusedLists(exchange: Exchange): ((scope: Scope) => boolean) | undefined {
    const decisions = this.#decisionsOf(exchange, 'list')
    return decisions && ((scope) => decisions.refusal(scope) !== undefined)
  }

  /** Whether the caller may not list, or not watch, all objects of the requested resource. */
  refusesWhole(exchange: Exchange): boolean {
    return ['list', 'watch'].some(
      (verb) => this.#decisionsOf(exchange, verb)?.refusal(everything) !== undefined,
    )
  }

  #decisionsOf(exchange: Exchange, verb: string): ScopedDecisions | undefined {
    if (this.#users.size === 0) return undefined
    const key = keyOf({ ...attributesOf(exchange), verb })
    return this.#users.get(userNameOf(exchange.identity))?.get(key)
  }

  #note(decision: Noted): Promise<void> | undefined {
    const { user, attributes, isAllowed } = decision
    const written = this.#record(decision)
    if (isAllowed) return written
    if (!attributes.isResource || attributes.subresource !== '' || !isOfCollection(attributes))
      return written
    // A caller that may not read a part of a collection may not read the whole that others share.
    const withdrawn = this.#parts.access.refused(identitiesOf(user), attributes)
    return Promise.all([withdrawn, written]).then(() => undefined)
  }

  #record(decision: Noted): Promise<void> | undefined {
    const { user, attributes, isAllowed, sentAt, isCached } = decision
    const key = keyOf(attributes)
    // A denial without its selectors refuses the same and more.
    const isShortened = !isAllowed && isTooLong(key, decision.scope)
    const scope = isShortened ? { ...decision.scope, selectors: '' } : decision.scope
    if (isTooLong(key, scope)) return undefined
    const known = this.#users.get(user)
    const decisions = known?.get(key)
    const hasRoom = (known ? sizeOf(known) : 0) + sizeOfOne(key, scope) <= mostOfUser
    if (!decisions && (isAllowed || !(hasRoom || isCached()))) return undefined
    const noted = decisions ?? new ScopedDecisions()
    const { closedAt } = noted
    const isChanged = isAllowed
      ? noted.allow(scope, now(), hasRoom, sentAt)
      : noted.deny(scope, now(), hasRoom)
    // A denial that repeats another is passed on only when that one is on the disk.
    if (!isChanged)
      return isAllowed ? undefined : this.#file.written()?.catch(this.#parts.onFailure)
    if (closedAt === 0 && noted.closedAt !== 0) this.#parts.onClosed(user, textOf(key))
    const all = new Map(known)
    if (noted.isEmpty) all.delete(key)
    else all.set(key, noted)
    this.#users.delete(user)
    if (all.size > 0) this.#users.set(user, all)
    this.#makeRoom()
    return this.#file.write().catch(this.#parts.onFailure)
  }

  #makeRoom(): void {
    const sizes = new Map([...this.#users].map(([user, decisions]) => [user, sizeOf(decisions)]))
    let all = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    while (all > mostDecisions) {
      const most = Math.max(...sizes.values())
      const [user = ''] = [...sizes].find(([, size]) => size === most) ?? []
      const decisions = this.#users.get(user) ?? new Map<string, ScopedDecisions>()
      const open = [...decisions].filter(([, { closedAt }]) => closedAt === 0)
      for (const [, each] of decisions) each.close(now())
      const size = sizeOf(decisions)
      // Decisions that cannot become smaller are forgotten.
      const left = size < most ? size : 0
      if (left > 0) for (const [key] of open) this.#parts.onClosed(user, textOf(key))
      else {
        this.#users.delete(user)
        this.#parts.onForgotten(user)
      }
      sizes.set(user, left)
      all -= most - left
    }
  }

  #entries(): readonly Entry[] {
    return [...this.#users].map(([user, decisions]) => [user, toEntries(decisions)])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

/** A service account is one user, whichever its uid: its rights are given to its name. */
function userNameOf(identity: Identity): string {
  const account = accountOf(identity)
  return account ? `system:serviceaccount:${account.namespace}:${account.name}` : identity
}

/** How the identities of a user begin whose name is of `userNameOf`. */
function identitiesOf(user: string): string {
  const [prefix, kind, namespace = '', name = ''] = user.split(':')
  const isOfAccount = prefix === 'system' && kind === 'serviceaccount'
  return isOfAccount ? accountsNamed({ namespace, name }) : user
}

/** Reviews may have any text as a verb, a group, a resource or a path. */
const keyOf = (attributes: Attributes): string =>
  JSON.stringify(
    attributes.isResource
      ? [attributes.verb, attributes.group, attributes.resource, attributes.subresource]
      : [attributes.verb, attributes.path],
  )

/** The parts of a key; `undefined` for what is none. */
function partsOf(key: string): readonly string[] | undefined {
  const parts = parseJson(key)
  return isList(parts) && parts.every((part) => typeof part === 'string') ? parts : undefined
}

/** A key for people. */
function textOf(key: string): string {
  const [verb = '', group = '', resource, subresource = ''] = partsOf(key) ?? []
  if (resource === undefined) return `${verb} ${group}`
  const qualified = qualifiedResource({ group, resource })
  return `${verb} ${qualified}${subresource && `/${subresource}`}`
}

const wholeOf = (group: string, resource: string): Omit<ResourceAttributes, 'verb'> => ({
  isResource: true,
  group,
  resource,
  subresource: '',
  namespace: '',
  name: '',
})

const isOfCollection = ({ verb }: Attributes): boolean => verb === 'list' || verb === 'watch'

function sizeOf(decisions: DecisionsOfUser): number {
  let size = 0
  for (const [key, { stored, closedAt }] of decisions) {
    if (closedAt !== 0) size += sizeOfOne(key, everything)
    for (const each of stored) size += sizeOfOne(key, each)
  }
  return size
}

const sizeOfOne = (key: string, scope: Scope): number =>
  Math.ceil(lengthOf(key, scope) / charactersOfDecision)

const isTooLong = (key: string, scope: Scope): boolean => lengthOf(key, scope) > longestRequest

const lengthOf = (key: string, { namespace, name, selectors }: Scope): number =>
  key.length + namespace.length + name.length + selectors.length

const scopeOf = (attributes: Attributes): Omit<Scope, 'selectors'> =>
  attributes.isResource
    ? { namespace: attributes.namespace, name: attributes.name }
    : { namespace: '', name: '' }

function requestScope({ info }: Exchange, attributes: Attributes): Scope {
  if (!info.isResource || !isOfCollection(attributes))
    return { ...scopeOf(attributes), selectors: '' }
  return { ...scopeOf(attributes), selectors: selectorsText(info) }
}

/** An API server refuses a malformed selector, and the cache has nothing for it. */
function selectorsText(info: ResourceRequest): string {
  try {
    return textOfSelectors(selectorsOf(info))
  } catch (error) {
    if (error instanceof MalformedSelector) return ''
    throw error
  }
}

/** As a `Scope` has them. */
export const textOfSelectors = ({
  labelSelector,
  fieldSelector,
}: Pick<CollectionKey, 'labelSelector' | 'fieldSelector'>): string =>
  labelSelector === '' && fieldSelector === '' ? '' : JSON.stringify([labelSelector, fieldSelector])

/** `undefined` for a review that is not about a caller with a token. */
function subjectOf({ identity, credential }: Exchange, review: Review): Subject | undefined {
  const question = review.kind === 'TokenReview' ? undefined : questionOf(review.kind, review.spec)
  if (!question) return undefined
  const resource = review.spec['resourceAttributes']
  const { labelSelector, fieldSelector } = isObject(resource) ? resource : {}
  const hasSelector = Boolean(labelSelector ?? fieldSelector)
  const { user, attributes } = question
  if (user ? !isAccount(user) : credential !== 'caller') return undefined
  return {
    user: user?.name ?? userNameOf(identity),
    attributes,
    scope: {
      ...scopeOf(attributes),
      selectors: hasSelector ? JSON.stringify({ labelSelector, fieldSelector }) : '',
    },
  }
}

/** Whether the groups are those that an API server gives the service account of this name. */
function isAccount({ name, groups }: UserInfo): boolean {
  const [prefix, account, namespace, of, ...more] = name.split(':')
  if (prefix !== 'system' || account !== 'serviceaccount' || more.length > 0) return false
  if (!namespace || !of) return false
  return isSameSet(groups, groupsOfAccount(namespace))
}

const isSameSet = (some: readonly string[], others: readonly string[]): boolean =>
  new Set(some).symmetricDifference(new Set(others)).size === 0

type StoredScope = readonly [
  namespace: string,
  name: string,
  selectors: string,
  allowed: boolean,
  at: number,
]

type Entry = [
  user: string,
  decisions: (readonly [key: string, closedAt: number, scopes: readonly StoredScope[]])[],
]

const fromEntry = ([key, closedAt, scopes]: Entry[1][number]): [string, ScopedDecisions] => [
  key,
  ScopedDecisions.from(
    closedAt,
    scopes.map(([namespace, name, selectors, allowed, at]) => ({
      namespace,
      name,
      selectors,
      allowed,
      at,
    })),
  ),
]

const toEntries = (decisions: DecisionsOfUser): Entry[1] =>
  [...decisions].map(([key, { closedAt, stored }]) => [key, closedAt, stored.map(toStored)])

const toStored = ({ namespace, name, selectors, allowed, at }: ScopedDecision): StoredScope => [
  namespace,
  name,
  selectors,
  allowed,
  at,
]

const isTuple = (value: unknown, ...types: readonly string[]): value is readonly unknown[] =>
  Array.isArray(value) && types.every((type, i) => typeof value[i] === type)

const isEntry = (entry: unknown): entry is Entry =>
  isTuple(entry, 'string', 'object') &&
  Array.isArray(entry[1]) &&
  entry[1].every(
    (each) =>
      isTuple(each, 'string', 'number', 'object') &&
      partsOf(String(each[0])) !== undefined &&
      Array.isArray(each[2]) &&
      each[2].every((scope) => isTuple(scope, 'string', 'string', 'string', 'boolean', 'number')),
  )
