/** Lines around a change. */
const context = 3

/** Above so many pairs of lines a change is shown as a whole: comparing costs their number. */
const mostPairs = 4_000_000

type Line = readonly [mark: ' ' | '-' | '+', text: string]

/** The hunks of a unified diff, without a head; '' where both texts are the same. */
export function unifiedDiff(before: string, after: string): string {
  const lines = compared(before.split('\n'), after.split('\n'))
  let [oldLine, newLine] = [1, 1]
  const hunks: { readonly at: readonly [number, number]; readonly lines: Line[] }[] = []
  let lastShown = -1
  for (const [index, line] of lines.entries()) {
    const around = lines.slice(Math.max(index - context, 0), index + context + 1)
    if (around.some(([mark]) => mark !== ' ')) {
      const hunk = hunks.at(-1)
      if (hunk && lastShown === index - 1) hunk.lines.push(line)
      else hunks.push({ at: [oldLine, newLine], lines: [line] })
      lastShown = index
    }
    if (line[0] !== '+') oldLine += 1
    if (line[0] !== '-') newLine += 1
  }
  return hunks.map(textOf).join('')
}

function textOf({
  at: [oldLine, newLine],
  lines,
}: {
  readonly at: readonly [number, number]
  readonly lines: readonly Line[]
}): string {
  const count = (without: '+' | '-'): number => lines.filter(([mark]) => mark !== without).length
  const head = `@@ -${oldLine},${count('+')} +${newLine},${count('-')} @@\n`
  return `${head}${lines.map(([mark, text]) => `${mark}${text}\n`).join('')}`
}

function compared(before: readonly string[], after: readonly string[]): Line[] {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start += 1
  let end = 0
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const same = (text: string): Line => [' ', text]
  return [
    ...before.slice(0, start).map(same),
    ...changed(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ]
}

/** By the longest common subsequence of their lines. */
function changed(before: readonly string[], after: readonly string[]): Line[] {
  const removed = before.map((text): Line => ['-', text])
  const added = after.map((text): Line => ['+', text])
  if (before.length * after.length > mostPairs) return [...removed, ...added]
  // The length of the longest subsequence of what follows each pair.
  const width = after.length + 1
  const longest = new Uint32Array((before.length + 1) * width)
  const at = (i: number, j: number): number => longest[i * width + j] ?? 0
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: Line[] = []
  let [i, j] = [0, 0]
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push([' ', before[i] ?? ''])
      i += 1
      j += 1
    } else if (at(i + 1, j) >= at(i, j + 1)) lines.push(removed[i++] ?? ['-', ''])
    else lines.push(added[j++] ?? ['+', ''])
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)]
}
