/**
 * Maps each batch, possibly to an empty one. Iterated once. Leaving the iteration early closes the
 * source, even one that was never started, which a generator would not do. So does an error in
 * `change`.
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
