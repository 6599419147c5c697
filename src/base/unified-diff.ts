import { diff } from 'node:util'

/** Lines around a change. */
const context = 3

type Line = readonly [mark: ' ' | '-' | '+', text: string]

/** The hunks of a unified diff, without a head; '' where both texts are the same. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return ''
  const lines = diff(linesOf(before), linesOf(after)).map(([operation, text]): Line => [
    marks[operation],
    text,
  ])
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

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

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

const marks = { '1': '-', '0': ' ', '-1': '+' } as const
