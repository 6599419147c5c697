import { join } from 'node:path'
import type { Logger } from 'pino'
import { asBuffer } from '../../base/bytes.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import { parseJson, type Json } from '../../api/kube/json.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import { sharedIdentity } from '../../api/request/identity.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { UnusableAnswer } from '../../http/exchange/unusable-answer.ts'
import { privilegedGroup, union, type Authorizer } from '../authorization/attributes.ts'
import { recordedMinor } from '../answers/recorded-version.ts'
import { nodeAuthorizer, type IsRelated } from '../authorization/node-authorizer.ts'
import type { PolicyAuthorizer } from '../authorization/offline-authorization.ts'
import { rbacAuthorizer } from '../authorization/rbac-authorizer.ts'
import {
  clusterRoleBindingOf,
  roleBindingOf,
  rulesOf,
  type Binding,
  type PolicyRule,
} from '../authorization/rbac-policy.ts'
import { HubInformer, type InformerState } from '../cache/hub-informer.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { logFailure } from './log-failure.ts'
import { unreadable } from './unreadable.ts'

interface PolicyDependencies {
  readonly rootDir: string
  readonly store: ObjectStore
  readonly isRelated: IsRelated
  readonly log: Logger
}

interface ReadingParts {
  readonly cloud: Cloud
  /** Reads from an API server or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  readonly log: Logger
}

const gvr = (resource: string): GVR => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource,
})

/** The consequence of missing policies. */
const consequence = 'offline, callers other than the node are answered 503'

/** By resource, the status code with which an API server last refused to list it. */
type Refusals = Map<string, number>

interface CollectionParts extends PolicyDependencies {
  readonly refusals: Refusals
  /** Called when the values have changed, or whether they count. */
  readonly onChange: () => void
  /** Called when `refusals` has changed, before `onChange`. */
  readonly onRefusals: () => void
}

/**
 * One collection of policies: its values are those of the last list and the events since. Once an
 * API server refuses them they do not count until one lists them again: the cache's state of them
 * may be out of date for longer than an outage.
 */
class PolicyCollection<T> {
  readonly #gvr: GVR
  readonly #parse: (object: Json) => T | undefined
  readonly #parts: CollectionParts
  #values: ReadonlyMap<string, T> | undefined

  constructor(resource: string, parse: (object: Json) => T | undefined, parts: CollectionParts) {
    this.#gvr = gvr(resource)
    this.#parse = parse
    this.#parts = parts
  }

  /** `undefined`: never read, or refused. */
  get values(): ReadonlyMap<string, T> | undefined {
    return this.#refusal === undefined ? this.#values : undefined
  }

  /** When an API server last confirmed them, in milliseconds since the epoch; 0: not known. */
  get confirmedAt(): number {
    const partition = {
      identity: sharedIdentity,
      representation: objectRepresentation('json').key,
    }
    const key = { partition, gvr: this.#gvr, labelSelector: '', fieldSelector: '' }
    return this.#parts.store.confirmedAt(key) ?? 0
  }

  /** Why they do not decide, if they do not. */
  get fault(): string | undefined {
    const what = qualifiedResource(this.#gvr)
    if (this.#refusal !== undefined) return this.#faultOf(this.#refusal)
    return this.#values
      ? undefined
      : `--offline-authorization=rbac has not read ${what} yet; ${consequence}`
  }

  /** Reads and watches the collection. */
  informer({ cloud, dispatch, log }: ReadingParts): HubInformer<T> {
    // The last list came from an API server.
    let isCurrent = false
    return new HubInformer<T>({
      of: { versions: [this.#gvr], encoding: 'json' },
      onBehalf: { identity: sharedIdentity, credential: 'node' },
      ask: async (exchange) => {
        if (this.#refusal !== undefined && cloud.online !== true) {
          throw new UnusableAnswer('the API server refused these policies: not read from the cache')
        }
        const reply = await dispatch(exchange)
        if (reply.kind === 'list') isCurrent = reply.from === 'cloud'
        return reply
      },
      linkChanged: () => cloud.onlineChanged,
      read: ({ bytes }) => this.#parse(parseJson(asBuffer(bytes).toString()) ?? null),
      onValues: (values) => {
        this.#values = values
        this.#parts.onChange()
      },
      onState: (state) => this.#setState(state, isCurrent),
      onFailed: (err) => {
        const { resource } = this.#gvr
        logFailure(log, 'debug', { err, resource }, 'cannot read policies')
      },
    })
  }

  get #refusal(): number | undefined {
    return this.#parts.refusals.get(this.#gvr.resource)
  }

  #setState(state: InformerState, isCurrent: boolean): void {
    const { refusals, log } = this.#parts
    const { resource } = this.#gvr
    const before = this.#refusal
    if (state.kind === 'refused') refusals.set(resource, state.code)
    if (state.kind === 'synced' && isCurrent) refusals.delete(resource)
    const code = this.#refusal
    if (code === before) return
    this.#parts.onRefusals()
    this.#parts.onChange()
    if (code !== undefined) log.warn(this.#faultOf(code))
  }

  #faultOf(code: number): string {
    const { why, advice } = unreadable(code)
    return `--offline-authorization=rbac cannot read ${qualifiedResource(this.#gvr)} (${code}): ${why}${advice} with --offline-authorization=rbac; ${consequence}`
  }
}

/** The cluster's policies for `--offline-authorization=rbac`, as `PolicyInformers` read them. */
export class ClusterPolicies implements AsyncDisposable {
  readonly #roles: PolicyCollection<readonly PolicyRule[]>
  readonly #clusterRoles: PolicyCollection<readonly PolicyRule[]>
  readonly #roleBindings: PolicyCollection<Binding>
  readonly #clusterRoleBindings: PolicyCollection<Binding>
  readonly #ofNodes: Authorizer
  readonly #file: StateFile
  /** Made with the first question after a change: a change of many objects comes one by one. */
  #authorizer: Authorizer | undefined

  constructor(dependencies: PolicyDependencies) {
    const { rootDir, log } = dependencies
    const path = join(rootDir, 'refused-policies.json')
    const refusals: Refusals = new Map(storedEntries(path, isRefusal))
    this.#file = new StateFile(path, () => JSON.stringify([...refusals]))
    const parts: CollectionParts = {
      ...dependencies,
      refusals,
      onChange: () => {
        this.#authorizer = undefined
      },
      onRefusals: () => {
        this.#file
          .write()
          .catch((err: unknown) =>
            log.error(
              { err },
              'cannot write refused-policies.json: after a restart offline, policies that API servers no longer show may decide',
            ),
          )
      },
    }
    this.#ofNodes = nodeAuthorizer(dependencies.isRelated, () => recordedMinor(dependencies.store))
    this.#roles = new PolicyCollection('roles', rulesOf, parts)
    this.#clusterRoles = new PolicyCollection('clusterroles', rulesOf, parts)
    this.#roleBindings = new PolicyCollection('rolebindings', roleBindingOf, parts)
    this.#clusterRoleBindings = new PolicyCollection(
      'clusterrolebindings',
      clusterRoleBindingOf,
      parts,
    )
  }

  get collections() {
    return [this.#roles, this.#clusterRoles, this.#roleBindings, this.#clusterRoleBindings]
  }

  /** `undefined` until all of them have been read, and while an API server refuses one. */
  get authorizer(): PolicyAuthorizer | undefined {
    const authorize = (this.#authorizer ??= this.#made())
    return (
      authorize && {
        authorize,
        confirmedAt: Math.min(...this.collections.map(({ confirmedAt }) => confirmedAt)),
      }
    )
  }

  #made(): Authorizer | undefined {
    const [roles, clusterRoles] = [this.#roles.values, this.#clusterRoles.values]
    const [bindings, clusterBindings] = [
      this.#roleBindings.values,
      this.#clusterRoleBindings.values,
    ]
    if (!roles || !clusterRoles || !bindings || !clusterBindings) return undefined
    const policies = {
      roles,
      clusterRoles,
      roleBindings: bindings.values(),
      clusterRoleBindings: clusterBindings.values(),
    }
    return union(privilegedGroup, this.#ofNodes, rbacAuthorizer(policies))
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLines(): string[] {
    return this.collections.flatMap(({ fault }) => (fault === undefined ? [] : [`[ ]${fault}`]))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

/**
 * Reads the cluster's policies: an informer for each collection, recorded like the inputs of
 * filters. Offline, also after a restart, the last recorded ones decide. To be disposed of before
 * the policies.
 */
export class PolicyInformers implements AsyncDisposable {
  readonly #informers: readonly Pick<HubInformer<unknown>, 'retry' | typeof Symbol.asyncDispose>[]

  constructor({ collections }: ClusterPolicies, parts: ReadingParts) {
    this.#informers = collections.map((collection) => collection.informer(parts))
  }

  /** Retries refused reads, which may have been granted since. */
  reconfigure(): void {
    for (const informer of this.#informers) informer.retry()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer[Symbol.asyncDispose]()))
  }
}

const isRefusal = (entry: unknown): entry is [string, number] =>
  Array.isArray(entry) && typeof entry[0] === 'string' && typeof entry[1] === 'number'
