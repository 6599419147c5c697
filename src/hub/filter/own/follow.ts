import { every } from '../../../base/clock.ts'
import { stampOf } from '../../../base/file-stamp.ts'
import type { FilterDefinition } from '../filter.ts'
import type { LoadedFilters } from './load.ts'
import { reasonOf } from './mistakes.ts'

export interface FilterFollower extends Disposable {
  /**
   * Follows these files from now on, and looks at them at once; what was loaded from them already
   * is in force at once.
   */
  move(files: readonly string[], loaded?: readonly FilterDefinition[]): void
}

export interface FollowFiltersOptions {
  readonly intervalMs: number
  readonly load: (files: readonly string[]) => Promise<LoadedFilters>
  /** Filters that differ from those in force, in whole. */
  readonly onLoaded: (filters: readonly FilterDefinition[]) => void
  /** The files were loaded again, and hold what is in force. */
  readonly onSame: () => void
  /**
   * What is wrong with the files, given once for each change of them. The filters before stay in
   * force, all of them.
   */
  readonly onUnusable: (mistakes: readonly string[]) => void
}

/**
 * Looks at the files every `intervalMs` and loads all of them when one has changed; `first` is in
 * force to begin with.
 */
export function followFilters(
  from: readonly string[],
  first: readonly FilterDefinition[],
  { intervalMs, load, onLoaded, onSame, onUnusable }: FollowFiltersOptions,
): FilterFollower {
  let files = from
  let inForce = identityOf(first)
  // What `first` was loaded from may have changed since.
  let stamp: string | undefined
  let loading = false
  let disposed = false
  const look = (): void => {
    const current = stampOf(files)
    if (loading || current === stamp) return
    stamp = current
    loading = true
    const meant = files
    void attempt(meant).finally(() => {
      loading = false
      if (meant !== files && !disposed) look()
    })
  }
  const attempt = async (meant: readonly string[]): Promise<void> => {
    const loaded = await load(meant).catch((cause: unknown) => ({ mistakes: [reasonOf(cause)] }))
    // Where others are wanted by now, those are loaded next.
    if (disposed || meant !== files) return
    if ('mistakes' in loaded) onUnusable(loaded.mistakes)
    else take(loaded.filters)
  }
  const take = (filters: readonly FilterDefinition[]): void => {
    if (identityOf(filters) === inForce) return onSame()
    inForce = identityOf(filters)
    onLoaded(filters)
  }
  const timer = every(intervalMs, look)
  return {
    move(to, loaded) {
      if (loaded || to.join('\0') !== files.join('\0')) {
        // What is being loaded is of another time, be it of the same files.
        files = [...to]
        stamp = undefined
      }
      if (loaded) take(loaded)
      look()
    },
    [Symbol.dispose]() {
      disposed = true
      timer[Symbol.dispose]()
    },
  }
}

/** Two lists of filters are the same where names and contents are. */
const identityOf = (filters: readonly FilterDefinition[]): string =>
  JSON.stringify(filters.map(({ name, revision }) => [name, revision]))
