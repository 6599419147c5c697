import { existsSync, readFileSync } from 'node:fs'

/** A test by its file and title. */
export interface NamedTest {
  readonly file: string
  readonly title: string
}

/** Tests named in a cell of a table: a file in backticks, then titles in quotes. */
export function testsIn(cell: string): NamedTest[] {
  return [...cell.matchAll(/`(test\/[^`]+)`: ((?:“.+?”(?:, )?)+)/g)].flatMap(
    ([, file = '', titles = '']) =>
      [...titles.matchAll(/“(.+?)”/g)].map(([, title = '']) => ({ file, title })),
  )
}

/** Titles of the tests in a file, as they are written there; those of contracts are promises. */
function titlesIn(file: string): readonly string[] {
  if (!existsSync(file)) return []
  const titles = readFileSync(file, 'utf8').matchAll(/(?:test|promise)\(\s*(['"`])(.+?)\1,/g)
  return [...titles].map(([, , title = '']) => title)
}

/** A title that is made for each of several cases is named by the part that they share. */
export const isThere = ({ file, title }: NamedTest): boolean =>
  titlesIn(file).some((found) => found.includes(title))
