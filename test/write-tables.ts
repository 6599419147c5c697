/** Brings the tables and pictures of docs/ in line with the code: `node test/write-tables.ts`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { picturesOf, readRecord } from '../bench/host-network/record.ts'
import { rowLines, tables } from './tables.ts'

for (const { file, heading, rows } of tables) {
  const lines = readFileSync(file, 'utf8').split('\n')
  const [from, to] = rowLines(lines, heading)
  lines.splice(from, to - from, ...rows().map((cells) => `| ${cells.join(' | ')} |`))
  writeFileSync(file, lines.join('\n'))
}

for (const [file, picture] of picturesOf(readRecord())) writeFileSync(file, picture)
