import { LRUCache } from 'lru-cache'

/**
 * Keeps the `most` recently used entries. Memory grows with the entries: with a bound on their
 * number alone the library allocates everything at once, half a millisecond and 200 KB for 4,096.
 */
export const lruCache = <Key extends NonNullable<unknown>, Value extends NonNullable<unknown>>(
  most: number,
): LRUCache<Key, Value> => new LRUCache({ maxSize: most, sizeCalculation: () => 1 })
