import type { Logger } from 'pino'
import { asBuffer } from '../../base/bytes.ts'
import { parseJson, type Json } from '../../api/kube/json.ts'
import { qualifiedResource, type GVR } from '../../api/kube/gvk.ts'
import { sharedIdentity } from '../../api/request/identity.ts'
import { objectRepresentation } from '../../api/request/representation.ts'
import type { Exchange, Handler } from '../../http/exchange/exchange.ts'
import { privilegedGroup, union, type Authorizer } from '../authorization/attributes.ts'
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
import { Informer, type InformerState } from '../cache/informer.ts'
import type { ObjectStore } from '../store/store.ts'
import type { Cloud } from '../upstream/cloud.ts'
import { logFailure } from './log-failure.ts'
import { unreadable } from './unreadable.ts'

interface PolicyDependencies {
  readonly cloud: Cloud
  readonly store: ObjectStore
  /** Reads from an API server or the cache, below filters and limits. */
  readonly dispatch: Handler<Exchange>
  readonly isRelated: IsRelated
  readonly log: Logger
}

const gvr = (resource: string): GVR => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource,
})

/** One collection of policies: its values are those of the last list and the events since. */
class PolicyCollection<T> implements AsyncDisposable {
  readonly #gvr: GVR
  readonly #parts: PolicyDependencies & { readonly onChange: () => void }
  readonly #informer: Informer<T>
  #values: ReadonlyMap<string, T> | undefined
  #refused: string | undefined

  constructor(
    resource: string,
    parse: (object: Json) => T | undefined,
    parts: PolicyDependencies & { readonly onChange: () => void },
  ) {
    const { cloud, dispatch, log } = parts
    this.#gvr = gvr(resource)
    this.#parts = parts
    this.#informer = new Informer<T>({
      of: { versions: [this.#gvr], encoding: 'json' },
      onBehalf: { identity: sharedIdentity, credential: 'node' },
      ask: dispatch,
      linkChanged: () => cloud.onlineChanged,
      read: ({ bytes }) => parse(parseJson(asBuffer(bytes).toString()) ?? null),
      onValues: (values) => {
        this.#values = values
        parts.onChange()
      },
      onState: (state) => this.#setState(state),
      onFailed: (err) => logFailure(log, 'debug', { err, resource }, 'cannot read policies'),
    })
  }

  /** `undefined`: never read, or an API server refuses them now. */
  get values(): ReadonlyMap<string, T> | undefined {
    return this.#refused === undefined ? this.#values : undefined
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

  get fault(): string | undefined {
    return this.#refused
  }

  /** Retries a refused read, which may have been granted since. */
  retry(): void {
    this.#informer.retry()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#informer[Symbol.asyncDispose]()
  }

  #setState(state: InformerState): void {
    if (state.kind === 'failed') return
    const before = this.#refused
    this.#refused = state.kind === 'refused' ? this.#faultOf(state.code) : undefined
    if (this.#refused !== before) this.#parts.onChange()
    if (this.#refused === undefined || this.#refused === before) return
    this.#parts.log.warn(this.#refused)
  }

  #faultOf(code: number): string {
    const { why, advice } = unreadable(code)
    return `--offline-authorization=rbac cannot read ${qualifiedResource(this.#gvr)} (${code}): ${why}${advice} with --offline-authorization=rbac; offline, callers other than the node are answered 503`
  }
}

/**
 * The cluster's policies for `--offline-authorization=rbac`, each collection read and watched by an
 * informer and recorded like the inputs of filters: offline, also after a restart, the last
 * recorded ones decide.
 */
export class ClusterPolicies implements AsyncDisposable {
  readonly #roles: PolicyCollection<readonly PolicyRule[]>
  readonly #clusterRoles: PolicyCollection<readonly PolicyRule[]>
  readonly #roleBindings: PolicyCollection<Binding>
  readonly #clusterRoleBindings: PolicyCollection<Binding>
  readonly #isRelated: IsRelated
  /** Made with the first question after a change: a change of many objects comes one by one. */
  #authorizer: Authorizer | undefined

  constructor(dependencies: PolicyDependencies) {
    const parts = { ...dependencies, onChange: () => (this.#authorizer = undefined) }
    this.#isRelated = dependencies.isRelated
    this.#roles = new PolicyCollection('roles', rulesOf, parts)
    this.#clusterRoles = new PolicyCollection('clusterroles', rulesOf, parts)
    this.#roleBindings = new PolicyCollection('rolebindings', roleBindingOf, parts)
    this.#clusterRoleBindings = new PolicyCollection(
      'clusterrolebindings',
      clusterRoleBindingOf,
      parts,
    )
  }

  get #all() {
    return [this.#roles, this.#clusterRoles, this.#roleBindings, this.#clusterRoleBindings]
  }

  /** `undefined` until all of them have been read, and while an API server refuses one. */
  get authorizer(): PolicyAuthorizer | undefined {
    const authorize = (this.#authorizer ??= this.#made())
    return (
      authorize && {
        authorize,
        confirmedAt: Math.min(...this.#all.map(({ confirmedAt }) => confirmedAt)),
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
    return union(privilegedGroup, nodeAuthorizer(this.#isRelated), rbacAuthorizer(policies))
  }

  /** Retries refused reads, which may have been granted since. */
  reconfigure(): void {
    for (const collection of this.#all) collection.retry()
  }

  /** For `/readyz?verbose`: it does not affect readiness. */
  verboseLines(): string[] {
    return this.#all.flatMap(({ fault }) => (fault === undefined ? [] : [`[ ]${fault}`]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((collection) => collection[Symbol.asyncDispose]()))
  }
}
