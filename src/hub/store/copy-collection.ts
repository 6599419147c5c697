import type { CollectionKey, ObjectStore, StoredList } from './store.ts'

/** Replaces the collection of `key` by a stored list, at that list's version. */
export async function copyCollection(
  store: ObjectStore,
  key: CollectionKey,
  { gvk, resourceVersion, extra, batches }: StoredList,
): Promise<void> {
  await using replacement = store.replace(key)
  for (const objects of batches) await replacement.add({ objects })
  await replacement.commit({ gvk, resourceVersion, extra })
}
