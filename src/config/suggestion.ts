/** The one candidate that begins with `word`, or that with the least edits from it, if few. */
function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const all = [...candidates]
  const [begun, ...more] = all.filter((candidate) => candidate.startsWith(word))
  if (begun !== undefined && more.length === 0) return begun
  let best: string | undefined
  let least = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of all) {
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

/** The edit distance with transpositions (optimal string alignment). */
function editsBetween(a: string, b: string): number {
  let last: readonly number[] = []
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      const exchanged = at(row, j) + (a[i] === b[j] ? 0 : 1)
      const swapped = a[i] === b[j - 1] && a[i - 1] === b[j] ? at(last, j - 1) + 1 : Infinity
      next.push(Math.min(exchanged, swapped, at(row, j + 1) + 1, at(next, j) + 1))
    }
    last = row
    row = next
  }
  return at(row, b.length)
}

const at = (row: readonly number[], index: number): number => row[index] ?? Infinity
