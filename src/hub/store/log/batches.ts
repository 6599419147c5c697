/** Bytes read at once: they block the event loop. */
export const batchBytes = 256 << 10
/** Entries of a batch: many small ones are work, too. */
const batchEntries = 512

/** What `read` makes of the entries, a batch at a time. */
export function* inBatches<Entry, Read>(
  entries: readonly Entry[],
  sizeOf: (entry: Entry) => number,
  read: (batch: readonly Entry[]) => readonly Read[],
): Generator<readonly Read[]> {
  let batch: Entry[] = []
  let bytes = 0
  for (const entry of entries) {
    const size = sizeOf(entry)
    if (batch.length > 0 && (bytes + size > batchBytes || batch.length >= batchEntries)) {
      yield read(batch)
      batch = []
      bytes = 0
    }
    batch.push(entry)
    bytes += size
  }
  if (batch.length > 0) yield read(batch)
}
