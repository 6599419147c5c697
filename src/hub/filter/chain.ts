import { cursorOf, isMirrorPod, type Cursor } from '../../api/codec/cursor.ts'
import { applyEdits } from '../../api/codec/edit.ts'
import { filteredEvent, isObjectEvent, type WatchEvent } from '../../api/codec/watch.ts'
import type { GVK } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ResourceRequest } from '../../api/request/request-info.ts'
import type { ChainState } from './chain-state.ts'
import type { FilterDefinition, Filter } from './filter.ts'
import type { InputName } from './inputs.ts'

/**
 * The filters that apply to one component, resource and verb, in order, for one state of their
 * inputs. Immutable: changed inputs make another chain.
 */
export interface FilterChain {
  /** The names of the filters that act, for logs and metrics. */
  readonly filters: readonly string[]
  /**
   * The state on which decisions depend besides the object. All chains with the same state decide
   * the same for the same object.
   */
  readonly state: ChainState
  /** Inputs that are unknown and awaited. Until they are known, the hub must not answer. */
  readonly missingInputs: readonly InputName[]
  /** The inputs of these filters. */
  readonly needs: ReadonlySet<InputName>
  /** An object in protobuf that the chain changes is as long as before, and none is withheld. */
  readonly keepsLengths: boolean
  /**
   * The object as the component gets it: the same instance where no filter changes it, `undefined`
   * where one withholds it. Each filter gets the result of the filters before it. `gvk` is the
   * object's, not that of its list.
   */
  apply(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined
}

/**
 * The part of a request that narrows it to some objects of its resource. Absent: the request is
 * about all.
 */
export type RequestScope = Pick<ResourceRequest, 'namespace' | 'name' | 'query'>

/** Receives the warnings and decisions of filters. */
export interface FilterObserver {
  readonly warn: (message: string) => void
  readonly onDecision: OnDecision
}

/** A filter that acts, with its definition. */
export interface ActiveFilter {
  readonly definition: FilterDefinition
  readonly filter: Filter
}

/** What one filter does with an object that it does not leave as it is. */
export interface FilterDecision {
  readonly filter: string
  readonly decision: 'edited' | 'withheld' | 'failed'
}

/**
 * Called for each filter that does not leave an object as it is. At one that has failed, for
 * `cause`, the filter's `onError` decides what happens to the object.
 */
export type OnDecision = (
  filter: string,
  decision: FilterDecision['decision'],
  cause?: unknown,
) => void

/** The `apply` of a chain of these filters. */
export const applying =
  (active: readonly ActiveFilter[], onDecision: OnDecision): FilterChain['apply'] =>
  (gvk, encoding, object) => {
    let result = object
    // Of `result`: it scans an object once for all the filters that leave it.
    let cursor: Cursor | undefined
    for (const { definition, filter } of active) {
      const { name } = definition
      try {
        cursor ??= cursorOf(encoding, gvk, result)
        const decision = filter(cursor)
        if (decision === 'leave') continue
        if (isMirror(gvk, encoding, object)) return object
        if (decision === 'withhold') {
          if (definition.withholds === false) throw new Error('the filter may withhold nothing')
          onDecision(name, 'withheld')
          return undefined
        }
        const edited = applyEdits(encoding, gvk, result, decision)
        if (edited === result) continue
        const isAsLong = edited.bytes.byteLength === result.bytes.byteLength
        if (definition.keepsLength && encoding === 'protobuf' && !isAsLong)
          throw new Error('the filter may change no length')
        onDecision(name, 'edited')
        cursor = undefined
        result = edited
      } catch (cause) {
        if (isMirror(gvk, encoding, object)) return object
        onDecision(name, 'failed', cause)
        if (definition.onError === 'withhold') return undefined
      }
    }
    return result
  }

/** Mirror pods pass unchanged. */
const isMirror = (gvk: GVK, encoding: Encoding, object: ApiObject): boolean => {
  if (gvk.kind !== 'Pod' || gvk.group !== '') return false
  try {
    return isMirrorPod(cursorOf(encoding, gvk, object))
  } catch {
    // The filters fail at an object that cannot be read, and count it.
    return false
  }
}

/**
 * The event as the component gets it; `undefined`: no event. It depends on whether the component
 * has the previous object, as with the API server's selectors (apiserver pkg/storage/cacher): see
 * `filteredEvent`. Other events pass.
 */
export const filterEvent = (
  chain: FilterChain,
  gvk: GVK,
  encoding: Encoding,
  event: WatchEvent,
): WatchEvent | undefined =>
  isObjectEvent(event)
    ? filteredEvent(gvk, encoding, event, (object) => chain.apply(gvk, encoding, object))
    : event
