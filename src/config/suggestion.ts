/** The candidate nearest to `word` in edits, if it is near enough to have been meant. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editsBetween(word.slice(0, 64), candidate)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** `, did you mean X?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>, prefix = ''): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : `, did you mean ${prefix}${meant}?`
}

/** Levenshtein's distance, one row at a time. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const substituted = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1)
      next.push(Math.min(substituted, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
