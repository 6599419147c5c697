import { lruCache } from '../../base/lru-cache.ts'
import { StateFile, storedEntries } from '../../base/state-file.ts'
import type { GVR } from '../../api/kube/gvk.ts'
import {
  compareVersions,
  resourceVersion,
  type ResourceVersion,
} from '../../api/kube/resource-version.ts'
import type { Identity } from '../../api/request/identity.ts'
import { areSame, type ChainState } from './chain-state.ts'

/**
 * A collection as one program watches it. In which encoding makes no difference to what it is
 * shown; whether it is shown whole objects does.
 */
export interface Audience {
  readonly identity: Identity
  readonly component: string
  readonly gvr: GVR
  readonly namespace: string | undefined
  readonly labelSelector: string
  readonly fieldSelector: string
  /** It is shown metadata, or rows of a Table. */
  readonly ofParts?: true
}

/** What an audience was shown from a version on. */
interface Era {
  readonly state: ChainState
  /** '': not known yet, or never to be: it may have been shown at any version. */
  from: string
  /** Whether a client that goes on from `from` itself has been shown all of it under this state. */
  isSure: boolean
}

interface Known {
  readonly eras: Era[]
  /** Whether it has ever listed: who never does is told only once that it should. */
  isListed: boolean
  /** Pending until the newest era is on the disk. */
  written: Promise<void> | undefined
}

/** More than the programs of a node have collections. */
export const mostAudiences = 2_048

/** As many states as are compared before a client is rather made to list again. */
export const mostEras = 4

/**
 * Under which states of its chain each audience was shown its collection, and from which version
 * on: from that, and from the version that a client goes on from, it follows what the client holds.
 * Two clients of one audience at the same version cannot be told apart: where the first was told of
 * a change of state, or listed after it, the second counts as told, too, until it is further. Kept
 * in `file`, on the disk before anything is shown under a state; without a file, for this process.
 * Disposing waits until all is written.
 */
export class Shown implements AsyncDisposable {
  readonly #file: StateFile | undefined
  readonly #onFailure: (cause: unknown) => void
  readonly #known = lruCache<string, Known>(mostAudiences)

  /** `onFailure` is called when the file could not be written. */
  constructor(file?: string, onFailure: (cause: unknown) => void = () => undefined) {
    this.#file = file === undefined ? undefined : new StateFile(file, () => this.#content())
    this.#onFailure = onFailure
    // Without it clients are made to list again once.
    const states: ChainState[] = []
    for (const entry of file === undefined ? [] : storedEntries(file, isEntry)) {
      if ('inputs' in entry) states.push(entry)
      else this.#remember(entry, states)
    }
  }

  #remember({ audience, eras, isListed }: KeptAudience, states: readonly ChainState[]): void {
    const known = eras.flatMap(({ state: at, ...era }): Era[] => {
      const state = states[at]
      return state ? [{ ...era, state }] : []
    })
    // Of half of it nothing can be concluded.
    if (known.length < eras.length) return
    this.#known.set(audience, { eras: known, isListed, written: undefined })
  }

  /** Whether anything is known of an audience. */
  knows(audience: Audience): boolean {
    return this.#known.has(keyOf(audience))
  }

  /**
   * The states that a client of the audience may have been shown objects under that goes on from
   * `version`; `undefined`: perhaps under others, of which nothing is known.
   */
  under(audience: Audience, version: ResourceVersion | undefined): ChainState[] | undefined {
    const known = this.#known.get(keyOf(audience))
    if (!known) return undefined
    const states: ChainState[] = []
    for (const { state, from, isSure } of known.eras.toReversed()) {
      if (!states.some((each) => areSame(each, state))) states.push(state)
      if (from === '') {
        if (isSure) return states
        continue
      }
      const begun = resourceVersion(from)
      if (version === undefined || begun === undefined) continue
      const order = compareVersions(begun, version)
      // A version that came later than the state has been shown under it, and so has all before.
      if (order < 0 || (order === 0 && isSure)) return states
    }
    const [oldest] = known.eras
    return oldest?.from === '' ? states : undefined
  }

  /**
   * From now on the audience is shown its collection under `state`: a client at `from`, or at any
   * version. Resolves when that is on the disk, or could not be written; `undefined`: it is.
   */
  show(audience: Audience, state: ChainState, from?: ResourceVersion): Promise<void> | undefined {
    const known = this.#of(audience)
    const newest = known.eras.at(-1)
    if (newest && areSame(newest.state, state)) {
      // Another client of the audience is at a version of its own.
      if (from === undefined && !known.isListed) newest.from = ''
      return known.written
    }
    known.eras.push({ state, from: from ?? '', isSure: false })
    this.#shorten(known)
    return this.#write(known)
  }

  /** The audience has listed at `version`, under `state`. */
  listed(audience: Audience, state: ChainState, version: string): void {
    const known = this.#of(audience)
    const newest = known.eras.at(-1)
    if (!newest || !areSame(newest.state, state)) {
      // Meanwhile another client was shown another state: which of the two one at this version has,
      // is not known.
      known.eras.push({ state, from: version, isSure: false })
      this.#shorten(known)
    } else {
      const [listed, begun] = [resourceVersion(version), resourceVersion(newest.from)]
      const order = begun && listed ? compareVersions(listed, begun) : 1
      // Under a state before it, another client may have come further than this list.
      const isFirst = !begun || order === 0 || (order < 0 && known.eras.length === 1)
      const isKnown = !isFirst || (newest.isSure && newest.from === version)
      if (known.isListed && isKnown) return
      if (isFirst) newest.from = version
      newest.isSure ||= isFirst
    }
    known.isListed = true
    void this.#write(known)
  }

  /** A client has had the time to take what it was shown at the beginning of `state`. */
  taken(audience: Audience, state: ChainState): void {
    const known = this.#known.get(keyOf(audience))
    const newest = known?.eras.at(-1)
    if (!known || !newest || newest.isSure || !areSame(newest.state, state)) return
    if (newest.from === '') return
    newest.isSure = true
    void this.#write(known)
  }

  /**
   * A client of the audience was told to list, and what it holds then is shown under `state`, even
   * if it does not list here.
   */
  toldToList(audience: Audience, state: ChainState): void {
    const known = this.#of(audience)
    if (known.isListed) return
    known.eras.splice(0, Infinity, { state, from: '', isSure: true })
    void this.#write(known)
  }

  #of(audience: Audience): Known {
    const key = keyOf(audience)
    const known = this.#known.get(key)
    if (known) return known
    const unknown: Known = { eras: [], isListed: false, written: undefined }
    this.#known.set(key, unknown)
    return unknown
  }

  #shorten({ eras }: Known): void {
    eras.splice(0, Math.max(eras.length - mostEras, 0))
  }

  #write(known: Known): Promise<void> | undefined {
    if (!this.#file) return undefined
    const written = this.#file.write().catch((cause: unknown) => {
      this.#onFailure(cause)
    })
    known.written = written
    return written.then(() => {
      if (known.written === written) known.written = undefined
    })
  }

  /**
   * The states, each once, then the audiences: least used first, which is the order in which they
   * are to be set again.
   */
  #content(): string {
    const states = new Map<string, { readonly at: number; readonly state: ChainState }>()
    const placeOf = (state: ChainState): number => {
      const key = `${state.acts} ${state.chain} ${state.inputs}`
      const known = states.get(key) ?? { at: states.size, state }
      states.set(key, known)
      return known.at
    }
    const audiences = [...this.#known.rkeys()].map((audience): KeptAudience => {
      const { eras = [], isListed = false } = this.#known.peek(audience) ?? {}
      return {
        audience,
        isListed,
        eras: eras.map(({ state, ...era }) => ({ ...era, state: placeOf(state) })),
      }
    })
    const all = [...states.values()].map(({ state }) => state)
    return JSON.stringify([...all, ...audiences] satisfies readonly Entry[])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.[Symbol.asyncDispose]()
  }
}

/** What the file holds: states that audiences name by their place among them. */
type Entry = ChainState | KeptAudience

interface KeptAudience {
  readonly audience: string
  readonly eras: readonly (Omit<Era, 'state'> & { readonly state: number })[]
  readonly isListed: boolean
}

const keyOf = ({ identity, component, gvr, ...within }: Audience): string =>
  JSON.stringify([
    identity,
    component,
    gvr.group,
    gvr.version,
    gvr.resource,
    within.namespace ?? null,
    within.labelSelector,
    within.fieldSelector,
    ...(within.ofParts ? ['parts'] : []),
  ])

const isEntry = (entry: unknown): entry is Entry => isState(entry) || isAudience(entry)

function isState(entry: unknown): entry is ChainState {
  const { chain, inputs, acts } = (entry ?? {}) as Partial<ChainState>
  return typeof chain === 'string' && typeof inputs === 'string' && typeof acts === 'boolean'
}

function isAudience(entry: unknown): entry is KeptAudience {
  const { audience, eras, isListed } = (entry ?? {}) as Partial<KeptAudience>
  return (
    typeof audience === 'string' &&
    typeof isListed === 'boolean' &&
    Array.isArray(eras) &&
    eras.every(isKeptEra)
  )
}

function isKeptEra(era: unknown): boolean {
  const { state, from, isSure } = (era ?? {}) as Partial<KeptAudience['eras'][number]>
  return typeof state === 'number' && typeof from === 'string' && typeof isSure === 'boolean'
}
