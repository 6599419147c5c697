/**
 * How much there is to read: pages, words, links and cells of tables. `npm run check` runs this
 * file. Pages in docs/design/ are for those who change nodehub, and have no bars.
 */
import { globSync, readFileSync } from 'node:fs'
import type { SourceFile } from './floors.ts'

interface Bars {
  readonly pages: number
  readonly words: number
  readonly readmeWords: number
  readonly readmeLinks: number
  /** Cells of more than `cellCharacters`, of all pages together. */
  readonly longCells: number
}

const bars: Bars = {
  pages: 27,
  words: 33_000,
  readmeWords: 900,
  readmeLinks: 12,
  longCells: 0,
}

const cellCharacters = 200

const wordsOf = (text: string): number => text.match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0

/** The address of a link is no text that is read. */
const shownOf = (cell: string): string => cell.trim().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')

const longCellsOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap((line) => line.split(/(?<!\\)\|/).slice(1, -1))
    .map(shownOf)
    .filter((cell) => cell.length > cellCharacters && /[^-]/.test(cell))

const isReadme = ({ path }: SourceFile): boolean => path === 'README.md'

/** A sentence for each bar that README.md, and the other files as pages, exceed. */
function exceededBars(files: readonly SourceFile[], most: Bars): string[] {
  const readme = files.find(isReadme)?.source ?? ''
  const pages = files.filter((file) => !isReadme(file))
  const text = pages.map(({ source }) => source).join('\n')
  const longCells = files.flatMap(({ path, source }) =>
    longCellsOf(source).map((cell) => `${path}: ${cell.slice(0, 40)}…`),
  )
  const counted: readonly (readonly [keyof Bars, number, string])[] = [
    ['pages', pages.length, 'pages in docs/'],
    ['words', wordsOf(text), 'words in docs/'],
    ['readmeWords', wordsOf(readme), 'words in README.md'],
    ['readmeLinks', readme.match(/(?<!!)\[[^\]]*\]\(/g)?.length ?? 0, 'links in README.md'],
    ['longCells', longCells.length, `cells of more than ${cellCharacters} characters`],
  ]
  const exceeded = counted.filter(([name, number]) => number > most[name])
  return exceeded.map(([name, number, what]) => {
    const which = name === 'longCells' ? `; ${longCells.join('; ')}` : ''
    return `${number} ${what}, and ${most[name]} at most${which}`
  })
}

const pagesToRead = (): SourceFile[] =>
  globSync(['README.md', 'docs/**/*.md'], { exclude: ['docs/design/**'] }).map((path) => ({
    path: path.replaceAll('\\', '/'),
    source: readFileSync(path, 'utf8'),
  }))

if (import.meta.main) {
  const exceeded = exceededBars(pagesToRead(), bars)
  for (const sentence of exceeded) process.stderr.write(`bars: ${sentence}\n`)
  process.exitCode = exceeded.length > 0 ? 1 : 0
}
