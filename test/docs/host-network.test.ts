import t from 'tap'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arms } from '../../bench/host-network/arms.ts'
import { picturesOf, readRecord } from '../../bench/host-network/record.ts'
import { sentencesOf } from '../../bench/host-network/sentences.ts'
import { agrees } from '../../bench/host-network/table.ts'
import { workloads } from '../../bench/host-network/workloads.ts'
import { lint } from '../../src/cli/lint-command.ts'

const page = globSync('test/node/lint/examples/*.md')
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n')

/** A heading, the flags and the text of an example, and what the page says that lint prints. */
const examples = [
  ...page.matchAll(
    /^(?:## (?<heading>.*)\n(?:(?!```)[^\n]*\n)*?)?```\w+ lint(?<flags>[^\n]*)\n(?<text>[\s\S]*?)^```\n\n```\n(?<says>[\s\S]*?)^```$/gm,
  ),
].map(({ groups = {} }) => groups)

void t.test('the page shows what nodehub lint prints for each example', async (t) => {
  t.equal(examples.length, page.match(/^```\w+ lint/gm)?.length)
  t.ok(examples.length >= 18)
  for (const { heading, flags = '', text = '', says } of examples) {
    const file = join(t.testdir(), 'example')
    writeFileSync(file, text)
    let out = ''
    const argv = [file, ...flags.split(' ').filter(Boolean)]
    const code = await lint.run(argv, { out: (some) => (out += some), err: (some) => t.fail(some) })
    const printed = out
      .split('\n')
      .filter((line) => line.startsWith(`${file}:`))
      .map((line) => line.slice(file.length + 1).replace(/^(\d+):\d+:/, '$1:'))
    t.equal(printed.join('\n') || 'nothing', says?.trimEnd(), heading ?? text)
    t.equal(code, printed.some((line) => line.includes(' error: ')) ? 1 : 0)
  }
})

void t.test('pictures and sentences are those of the committed record', async (t) => {
  const record = readRecord()
  t.equal(record.rows.length, arms.length * workloads.length)
  for (const row of record.rows) t.ok(agrees(row), `${row.arm.name}, ${row.workload.name}`)
  for (const [file, picture] of picturesOf(record))
    t.equal(readFileSync(file, 'utf8'), picture, 'node test/write-tables.ts mends it')
  const comparison = readFileSync('docs/design/host-network-comparison.md', 'utf8')
  for (const sentence of sentencesOf(record)) t.ok(comparison.includes(`${sentence}\n`), sentence)
})
