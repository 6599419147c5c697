import { every } from '../../../base/clock.ts'
import { stampOf } from '../../../base/file-stamp.ts'
import type { FilterDefinition } from '../filter.ts'
import type { LoadedFilters } from './load.ts'
import { reasonOf } from './mistakes.ts'

export interface FilterFollower extends Disposable {
  /**
   * Follows these files from now on, and checks them at once. `loaded`, if any, are their filters,
   * which apply at once.
   */
  move(files: readonly string[], loaded?: readonly FilterDefinition[]): void
}

export interface FollowFiltersOptions {
  readonly intervalMs: number
  readonly load: (files: readonly string[]) => Promise<LoadedFilters>
  /** Filters that differ from those in force; all of them. */
  readonly onLoaded: (filters: readonly FilterDefinition[]) => void
  /** The files were loaded again, and contain the filters in force. */
  readonly onSame: () => void
  /**
   * The mistakes in the files, once for each change of them. All of the former filters stay in
   * force.
   */
  readonly onUnusable: (mistakes: readonly string[]) => void
}

/**
 * Checks the files every `intervalMs`, and loads all of them when one has changed; `first` is in
 * force initially.
 */
export function followFilters(
  from: readonly string[],
  first: readonly FilterDefinition[],
  { intervalMs, load, onLoaded, onSame, onUnusable }: FollowFiltersOptions,
): FilterFollower {
  let files = from
  let inForce = identityOf(first)
  // The files of `first` may have changed since.
  let stamp: string | undefined
  let loading = false
  let disposed = false
  const check = (): void => {
    const current = stampOf(files)
    if (loading || current === stamp) return
    stamp = current
    loading = true
    const attempted = files
    void attempt(attempted).finally(() => {
      loading = false
      if (attempted !== files && !disposed) check()
    })
  }
  const attempt = async (attempted: readonly string[]): Promise<void> => {
    const loaded = await load(attempted).catch((cause: unknown) => ({
      mistakes: [reasonOf(cause)],
    }))
    // If the files to follow have changed meanwhile, those are loaded next.
    if (disposed || attempted !== files) return
    if ('mistakes' in loaded) onUnusable(loaded.mistakes)
    else take(loaded.filters)
  }
  const take = (filters: readonly FilterDefinition[]): void => {
    if (identityOf(filters) === inForce) return onSame()
    inForce = identityOf(filters)
    onLoaded(filters)
  }
  const timer = every(intervalMs, check)
  return {
    move(to, loaded) {
      if (loaded || to.join('\0') !== files.join('\0')) {
        // A load in progress is outdated, even of the same files.
        files = [...to]
        stamp = undefined
      }
      if (loaded) take(loaded)
      check()
    },
    [Symbol.dispose]() {
      disposed = true
      timer[Symbol.dispose]()
    },
  }
}

/** Two lists of filters are the same if names and contents are. */
const identityOf = (filters: readonly FilterDefinition[]): string =>
  JSON.stringify(filters.map(({ name, revision }) => [name, revision]))
