/**
 * Lines of two texts, one after the other: `-` is only in the first, `+` only in the second. Empty
 * where they are equal.
 */
export function lineDiff(before: string, after: string): readonly string[] {
  if (before === after) return []
  const [a, b] = [linesOf(before), linesOf(after)]
  // length[i][j]: how many lines a from i on and b from j on have in common.
  const length = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  const common = (i: number, j: number): number => length[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    const row = length[i]
    if (row === undefined) continue
    for (let j = b.length - 1; j >= 0; j--) {
      row[j] =
        a[i] === b[j] ? common(i + 1, j + 1) + 1 : Math.max(common(i + 1, j), common(i, j + 1))
    }
  }
  const lines: string[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(` ${a[i]}`)
      i += 1
      j += 1
    } else if (i < a.length && (j >= b.length || common(i + 1, j) >= common(i, j + 1))) {
      lines.push(`-${a[i]}`)
      i += 1
    } else {
      lines.push(`+${b[j]}`)
      j += 1
    }
  }
  return lines
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
