/**
 * Brings the tables and pictures of README.md and docs/ in line with the code and the kept run:
 * `node test/write-tables.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { picturesOf, readRecord } from '../bench/host-network/record.ts'
import { withSentences } from '../bench/host-network/sentences.ts'
import { lists, rowLines, tables, withList } from './tables.ts'

for (const { file, heading, rows } of tables) {
  const lines = readFileSync(file, 'utf8').split('\n')
  const [from, to] = rowLines(lines, heading)
  lines.splice(from, to - from, ...rows().map((cells) => `| ${cells.join(' | ')} |`))
  writeFileSync(file, lines.join('\n'))
}

for (const { file, name, lines } of lists)
  writeFileSync(file, withList(readFileSync(file, 'utf8'), name, lines()))

const comparison = 'docs/design/host-network-comparison.md'
writeFileSync(comparison, withSentences(readFileSync(comparison, 'utf8'), readRecord()))

for (const [file, picture] of picturesOf(readRecord())) writeFileSync(file, picture)
