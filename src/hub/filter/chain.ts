import { cursorOf } from '../../api/codec/cursor.ts'
import { applyEdits } from '../../api/codec/edit.ts'
import type { GVK, GVR } from '../../api/kube/gvk.ts'
import type { Encoding } from '../../api/kube/media-type.ts'
import type { ApiObject } from '../../api/kube/object.ts'
import type { ResourceRequest, ResourceVerb } from '../../api/request/request-info.ts'
import type { ChainState } from './chain-state.ts'
import type { FilterDefinition, SettlingFilter, Filter } from './filter.ts'
import type { InputName } from './inputs.ts'
import type { Remembered, Verdict } from './remembered.ts'

/**
 * The filters that stand for one component, resource and verb, in their order, for one state of
 * what they know: it never changes. When what they know does, there is another.
 */
export interface Chain {
  /** Those that have something to do, by name: for logs and metrics. */
  readonly filters: readonly string[]
  /**
   * What looks depend on besides the object. Of one state every chain makes the same of the same
   * object.
   */
  readonly state: ChainState
  /**
   * What has never been known, and without which a filter would guess: until then nothing may be
   * shown.
   */
  readonly unknown: readonly InputName[]
  /** Whether `before` may have to be waited for. */
  readonly settles: boolean
  /**
   * What the component is shown of an object: the same instance where no filter changes it,
   * `undefined` where one withholds it. Each filter sees what those before it made. `gvk` is that
   * of the object, not of its list.
   */
  look(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined
  /**
   * To be waited for before anything of these objects is shown (see `SettlingFilter`); `undefined`:
   * there is nothing to wait for. Rejects where they may not be shown now.
   */
  before(gvk: GVK, encoding: Encoding, objects: readonly ApiObject[]): Promise<void> | undefined
}

/** What narrows a request down to some objects of its resource; absent: it is about all. */
export type Asked = Pick<ResourceRequest, 'namespace' | 'name' | 'query'>

/** All filters of a hub. */
export interface FilterChain {
  /**
   * The chain of now; `undefined` where no filter stands for it, which is to be asked before
   * anything is decoded.
   */
  chainFor(component: string, gvr: GVR, verb: ResourceVerb, asked?: Asked): Chain | undefined
  /**
   * The chain of another time, as the filters of now would have been then; `undefined` where no
   * filter stands for it, or where these are not the same filters.
   */
  chainOf(
    component: string,
    gvr: GVR,
    verb: ResourceVerb,
    state: ChainState,
    asked?: Asked,
  ): Chain | undefined
  /** Calls `act` whenever `chainFor` may answer otherwise than before, until disposed. */
  onChange(act: () => void): Disposable
}

/** Told of each object at which a filter failed; what became of it says the filter's `onError`. */
export type OnFilterFailure = (filter: string, cause: unknown) => void

/** Who is told of what filters have to say. */
export interface FilterTelling {
  readonly onFailure: OnFilterFailure
  readonly warn: (message: string) => void
  /**
   * Told when a filter has withheld an object, or changed it: once for each state and version of it
   * that is remembered.
   */
  readonly onLook?: (filter: string, result: 'withheld' | 'edited') => void
}

/** A filter as it was made of what it needs. */
export interface MadeFilter {
  readonly definition: FilterDefinition
  readonly made: Filter | SettlingFilter
}

export interface FilterListParts {
  readonly acting: readonly MadeFilter[]
  readonly state: ChainState
  readonly unknown: readonly InputName[]
  readonly remembered: Remembered
  readonly telling: FilterTelling
}

/** Tells chains apart in what is remembered. */
let made = 0

export class FilterList implements Chain {
  readonly filters: readonly string[]
  readonly state: ChainState
  readonly unknown: readonly InputName[]
  readonly settles: boolean
  readonly #id = made++
  readonly #parts: FilterListParts
  readonly #settling: readonly SettlingFilter[]

  constructor(parts: FilterListParts) {
    this.filters = parts.acting.map(({ definition }) => definition.name)
    this.state = parts.state
    this.unknown = parts.unknown
    this.#parts = parts
    this.#settling = parts.acting.flatMap((each) =>
      typeof each.made === 'function' ? [] : [each.made],
    )
    this.settles = this.#settling.length > 0
  }

  look(gvk: GVK, encoding: Encoding, object: ApiObject): ApiObject | undefined {
    const { acting, remembered } = this.#parts
    if (acting.length === 0) return object
    const known = remembered.get(this.#id, gvk, encoding, object)
    if (known !== undefined) return lookOf(known, object)
    const { verdict, failed } = isMirror(gvk, encoding, object)
      ? left
      : this.#judge(gvk, encoding, object)
    // A failure may be cured by the next try, and is counted at each.
    if (!failed) remembered.set(this.#id, gvk, encoding, object, verdict)
    return lookOf(verdict, object)
  }

  before(gvk: GVK, encoding: Encoding, objects: readonly ApiObject[]): Promise<void> | undefined {
    if (this.#settling.length === 0 || objects.length === 0) return undefined
    const shown = objects
      .filter((object) => !isMirror(gvk, encoding, object))
      .map((object) => ({ cursor: cursorOf(encoding, gvk, object), uid: object.uid }))
    const settled = this.#settling.flatMap((filter) => filter.before(shown) ?? [])
    return settled.length === 0 ? undefined : Promise.all(settled).then(() => undefined)
  }

  #judge(gvk: GVK, encoding: Encoding, object: ApiObject): Judged {
    const { acting, telling } = this.#parts
    let shown = object
    let failed = false
    for (const { definition, made: filter } of acting) {
      const { name } = definition
      try {
        const judge = typeof filter === 'function' ? filter : filter.filter
        const judgement = judge(cursorOf(encoding, gvk, shown))
        if (judgement === 'withhold') {
          telling.onLook?.(name, 'withheld')
          return { verdict: 'withheld', failed }
        }
        if (judgement === 'leave') continue
        const edited = applyEdits(encoding, gvk, shown, judgement)
        if (edited !== shown) telling.onLook?.(name, 'edited')
        shown = edited
      } catch (cause) {
        failed = true
        telling.onFailure(name, cause)
        if (definition.onError === 'withhold') return { verdict: 'withheld', failed }
      }
    }
    return { verdict: shown === object ? 'left' : shown, failed }
  }
}

interface Judged {
  readonly verdict: Verdict
  readonly failed: boolean
}

const left: Judged = { verdict: 'left', failed: false }

/**
 * A Pod that shows what a kubelet runs from a file: its kubelet compares it with that file, and
 * deletes it where they differ (kubernetes pkg/kubelet/types/pod_update.go).
 */
const isMirror = (gvk: GVK, encoding: Encoding, object: ApiObject): boolean => {
  if (gvk.kind !== 'Pod' || gvk.group !== '') return false
  try {
    const pod = cursorOf(encoding, gvk, object)
    return (
      pod.mentions('config.mirror') && pod.annotation('kubernetes.io/config.mirror') !== undefined
    )
  } catch {
    // What cannot be read is the filters' to fail at.
    return false
  }
}

function lookOf(verdict: Verdict, object: ApiObject): ApiObject | undefined {
  if (verdict === 'left') return object
  return verdict === 'withheld' ? undefined : verdict
}
