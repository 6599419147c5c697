import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { now } from '../base/clock.ts'
import type { JsonObject } from '../api/kube/json.ts'
import { listAt, objectAt, optionalTextAt, textAt, valueAt } from '../api/kube/json-at.ts'
import { namespacedName } from '../api/kube/object.ts'
import { alreadyExists, badRequest, conflict, notFound, StatusError } from '../api/kube/status.ts'
import { Catalog } from './catalog.ts'
import { defaulted } from './defaults.ts'
import { apiVersionOfKind, gvkOf, hasStatus, type Kind } from './kinds.ts'
import { sortedDeep, timestamp, withoutEmpty, type KubeObject } from './object.ts'
import { PathError } from '../api/codec/element.ts'
import { canonical } from './render.ts'
import type { Storage } from './storage.ts'
import { checkName } from './validation.ts'
import {
  generatedName,
  graceful,
  isDeleting,
  mergedUpdate,
  modified,
  podGrace,
  type DeleteOptions,
} from './write-rules.ts'

/** The object after a delete: waiting for its grace period or finalizers, or removed. */
export interface DeleteResult {
  readonly object: KubeObject
  readonly gone: boolean
}

const namespaceKind = { group: '', version: 'v1', resource: 'namespaces' }
const definitions = 'customresourcedefinitions'

/** Kinds a PUT may create. */
const createdByUpdate = new Set(['leases', 'endpoints', 'events'])

/** Kinds whose metadata.generation counts changes of the spec. */
const counted = new Set([
  'pods',
  'deployments',
  'replicasets',
  'daemonsets',
  'endpointslices',
  definitions,
])

/** Writes objects by the rules of the API. Failures are StatusErrors. */
export class Registry {
  readonly catalog = new Catalog()
  readonly #storage: Storage
  readonly #createdAgoMs: number

  constructor(storage: Storage, createdAgoMs = 0) {
    this.#storage = storage
    this.#createdAgoMs = createdAgoMs
  }

  /** Throws a StatusError 404 where there is no such object. */
  get(kind: Kind, namespace: string | undefined, name: string): KubeObject {
    const found = this.#storage.get(kind, namespace, name)
    if (!found) throw new StatusError(notFound({ ...kind.gvr, name }))
    return found
  }

  find(kind: Kind, namespace: string | undefined, name: string): KubeObject | undefined {
    return this.#storage.get(kind, namespace, name)
  }

  create(kind: Kind, namespace: string | undefined, given: JsonObject): KubeObject {
    this.#checkNamespace(kind, namespace, given)
    const prefix = textAt(given, 'metadata', 'generateName')
    const name = textAt(given, 'metadata', 'name') || (prefix && generatedName(prefix))
    const metadata: JsonObject = {
      ...objectAt(given, 'metadata'),
      name,
      ...(namespace !== undefined && { namespace }),
      uid: textAt(given, 'metadata', 'uid') || randomUUID(),
      creationTimestamp: timestamp(now() - this.#createdAgoMs),
      generation: counted.has(kind.gvr.resource) || kind.custom ? 1 : null,
      deletionTimestamp: null,
      deletionGracePeriodSeconds: null,
      resourceVersion: this.#storage.nextVersion,
    }
    const { status, ...rest } = given
    const accepted = kind.custom && hasStatus(kind) ? rest : { ...rest, ...(status && { status }) }
    checkName(kind, name)
    const object = this.#finished(kind, defaulted(kind, { ...accepted, metadata }))
    if (this.#storage.get(kind, namespace, name)) {
      throw new StatusError(alreadyExists({ ...kind.gvr, name }))
    }
    this.#put(kind, object)
    return object
  }

  /** `subresource`: only its part of the object is updated. */
  update(
    kind: Kind,
    namespace: string | undefined,
    name: string,
    given: JsonObject,
    subresource?: string,
  ): { object: KubeObject; created: boolean } {
    this.#checkNames(namespace, name, given)
    const old = this.#storage.get(kind, namespace, name)
    if (!old) {
      if (subresource !== undefined || !createdByUpdate.has(kind.gvr.resource))
        this.get(kind, namespace, name)
      return { object: this.create(kind, namespace, given), created: true }
    }
    this.#checkVersion(kind, old, given)
    const merged = mergedUpdate(kind, old, given, subresource)
    const same = this.#finished(kind, merged)
    if (isDeepStrictEqual(same, old)) return { object: old, created: false }
    const generation = valueAt(old, 'metadata', 'generation')
    const metadata: JsonObject = {
      ...same.metadata,
      resourceVersion: this.#storage.nextVersion,
      ...(typeof generation === 'number' &&
        !isDeepStrictEqual(same['spec'], old['spec']) && { generation: generation + 1 }),
    }
    const object = this.#finished(kind, { ...same, metadata })
    if (
      isDeleting(object) &&
      listAt(object, 'metadata', 'finalizers').length === 0 &&
      !graceful(object)
    ) {
      this.#remove(kind, object)
    } else {
      this.#put(kind, object)
    }
    return { object, created: false }
  }

  delete(
    kind: Kind,
    namespace: string | undefined,
    name: string,
    options: DeleteOptions,
  ): DeleteResult {
    const old = this.get(kind, namespace, name)
    const isPod = kind.kind === 'Pod'
    const grace = isPod ? podGrace(old, options) : 0
    const held = grace > 0 || listAt(old, 'metadata', 'finalizers').length > 0
    // Only kinds with a grace period get a deletion timestamp before they are removed.
    if (!held) {
      return {
        object: this.#remove(kind, isPod ? this.#ending(kind, old, grace) : old),
        gone: true,
      }
    }
    const before = valueAt(old, 'metadata', 'deletionGracePeriodSeconds')
    if (isDeleting(old) && typeof before === 'number' && grace >= before) {
      return { object: old, gone: false }
    }
    const object = this.#ending(kind, old, grace)
    this.#put(kind, object)
    return { object, gone: false }
  }

  #ending(kind: Kind, old: KubeObject, grace: number): KubeObject {
    const generation = valueAt(old, 'metadata', 'generation')
    const metadata: JsonObject = {
      ...old.metadata,
      resourceVersion: this.#storage.nextVersion,
      deletionTimestamp: timestamp(now() + grace * 1000),
      deletionGracePeriodSeconds: grace,
      ...(typeof generation === 'number' && !isDeleting(old) && { generation: generation + 1 }),
    }
    return this.#finished(kind, { ...old, metadata })
  }

  #put(kind: Kind, object: KubeObject): void {
    this.#storage.put(kind, object)
    if (kind.gvr.resource === definitions) this.catalog.define(object)
  }

  #remove(kind: Kind, object: KubeObject): KubeObject {
    const removed = this.#storage.remove(kind, object)
    if (kind.gvr.resource === definitions) {
      for (const gone of this.catalog.forget(object.metadata.name)) this.#removeAll(gone)
    }
    if (kind.gvr.resource === 'namespaces') {
      for (const inside of this.catalog.kinds) {
        if (inside.namespaced) this.#removeAll(inside, object.metadata.name)
      }
    }
    return removed
  }

  #removeAll(kind: Kind, namespace?: string): void {
    for (const object of this.#storage.at(kind, this.#storage.version).values()) {
      if (namespace === undefined || object.metadata.namespace === namespace) {
        this.#storage.remove(kind, object)
      }
    }
  }

  /** With all members that the server would show, in the server's order. */
  #finished(kind: Kind, object: JsonObject): KubeObject {
    const whole: JsonObject = {
      ...object,
      kind: kind.kind,
      apiVersion: apiVersionOfKind(kind),
      metadata: withoutEmpty(objectAt(object, 'metadata')),
    }
    if (kind.custom) return sortedDeep(whole) as KubeObject
    const { kind: name, apiVersion, metadata, ...rest } = whole
    try {
      return canonical(gvkOf(kind), {
        kind: name ?? '',
        apiVersion: apiVersion ?? '',
        metadata: metadata ?? {},
        ...rest,
      }) as KubeObject
    } catch (cause) {
      if (!(cause instanceof PathError)) throw cause
      const text = `${kind.kind} in version "${kind.gvr.version}" cannot be handled as a ${kind.kind}: ${cause.message}`
      throw new StatusError(badRequest(text), { cause })
    }
  }

  #checkNamespace(kind: Kind, namespace: string | undefined, given: JsonObject): void {
    const own = optionalTextAt(given, 'metadata', 'namespace')
    if (own && own !== namespace) {
      throw new StatusError(
        badRequest(
          'the namespace of the provided object does not match the namespace sent on the request',
        ),
      )
    }
    if (!kind.namespaced || namespace === undefined) return
    const home = this.catalog.find(namespaceKind)
    if (home && !this.#storage.get(home, undefined, namespace)) {
      throw new StatusError(notFound({ ...namespaceKind, name: namespace }))
    }
  }

  #checkNames(namespace: string | undefined, name: string, given: JsonObject): void {
    const own = optionalTextAt(given, 'metadata', 'name')
    if (own && own !== name) {
      throw new StatusError(
        badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`),
      )
    }
    const ownNamespace = optionalTextAt(given, 'metadata', 'namespace')
    if (ownNamespace && ownNamespace !== namespace) {
      throw new StatusError(
        badRequest(
          `the namespace of the object (${ownNamespace}) does not match the namespace on the URL (${namespace ?? ''})`,
        ),
      )
    }
  }

  #checkVersion(kind: Kind, old: KubeObject, given: JsonObject): void {
    const { name } = old.metadata
    const requested = textAt(given, 'metadata', 'resourceVersion')
    const uid = optionalTextAt(given, 'metadata', 'uid')
    if (uid && uid !== old.metadata.uid) {
      const key = `/registry/${kind.gvr.resource}/${namespacedName(old.metadata)}`
      const cause = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`
      throw new StatusError(conflict({ ...kind.gvr, name }, cause))
    }
    if (requested !== '' && requested !== old.metadata.resourceVersion) {
      throw new StatusError(conflict({ ...kind.gvr, name }, modified))
    }
  }
}
