/**
 * What `change` makes of each batch, which may be nothing; iterated once. Whoever leaves early lets
 * go of the rest, also of what was never begun: that a generator would not pass on. Where `change`
 * throws the rest is let go of, too.
 */
export function mapBatches<From, To>(
  batches: Iterable<readonly From[]>,
  change: (batch: readonly From[]) => readonly To[],
): IterableIterator<readonly To[]> {
  const all = batches[Symbol.iterator]()
  return {
    [Symbol.iterator]() {
      return this
    },
    next: () => {
      const { done, value } = all.next()
      if (done === true) return { done, value: undefined }
      try {
        return { value: change(value) }
      } catch (error) {
        all.return?.()
        throw error
      }
    },
    return: () => {
      all.return?.()
      return { done: true, value: undefined }
    },
  }
}
