import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { markdownOf } from './markdown.ts'
import { pictureOf } from './picture.ts'
import type { PageNotes, Results } from './results.ts'

/** Writes `results.json`, `results.md` and `results.svg`. */
export function writeResults(folder: string, results: Results, notes: PageNotes): void {
  mkdirSync(folder, { recursive: true })
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  write('results.json', `${JSON.stringify(results, null, 1)}\n`)
  write('results.md', markdownOf(results, notes))
  write('results.svg', pictureOf(results))
}
