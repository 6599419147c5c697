/** The rows that documents must have, made of the code's own tables. */
import { footprintRows } from '../bench/report/footprint.ts'
import { readResults } from '../bench/report/results.ts'
import { readRecord } from '../bench/host-network/record.ts'
import { armsBy, cellsOf, costsOf } from '../bench/host-network/table.ts'
import { liveMark, notYet } from '../src/cli/flag-help.ts'
import { checkOptions, clusterOptions, exitPlanOptions } from '../src/config/cluster-options.ts'
import { defaultOf, type OptionTable } from '../src/config/option.ts'
import { options } from '../src/config/options.ts'
import { clusterMetricTable } from '../src/metrics/cluster-table.ts'
import { rules } from '../src/node/lint/rules.ts'
import { metricTable, type MetricRow } from '../src/metrics/table.ts'

const quoted = (text: string): string => (text === '' ? '' : `\`${text}\``)

interface DocumentTable {
  readonly file: string
  /** Under which the table stands. */
  readonly heading: string
  readonly rows: () => string[][]
}

/** Every table that is made of code; `test/write-tables.ts` writes them. */
export const tables: readonly DocumentTable[] = [
  {
    file: 'README.md',
    heading: '## What it costs',
    rows: () => footprintRows(readResults('bench/results.json')),
  },
  { file: 'docs/flags.md', heading: '## Of the hub', rows: () => flagRows() },
  { file: 'docs/flags.md', heading: '## Of yurthub alone', rows: () => acceptedRows('yurthub') },
  {
    file: 'docs/flags.md',
    heading: '## Of earlier releases',
    rows: () => acceptedRows('earlier releases'),
  },
  { file: 'docs/metrics.md', heading: '## Of the hub', rows: () => metricRows('nodehub_') },
  { file: 'docs/metrics.md', heading: '## Of yurthub', rows: () => metricRows('node_yurthub_') },
  {
    file: 'docs/cluster-reference.md',
    heading: '## Flags',
    rows: () => flagRows(clusterOptions),
  },
  {
    file: 'docs/cluster-reference.md',
    heading: '## Flags of nodehub cluster check',
    rows: () => flagRows(checkOptions),
  },
  {
    file: 'docs/leave-propagation.md',
    heading: '## Flags',
    rows: () => flagRows(exitPlanOptions),
  },
  {
    file: 'docs/cluster-reference.md',
    heading: '## Metrics',
    rows: () => metricRows('nodehub_cluster_', clusterMetricTable),
  },
  { file: 'docs/lint-rules.md', heading: '## Rules', rows: () => ruleRows() },
  {
    file: 'docs/design/host-network-comparison.md',
    heading: '## Nodes without a pod network',
    rows: () => cellsOf(readRecord().rows, armsBy(false)),
  },
  {
    file: 'docs/design/host-network-comparison.md',
    heading: '## Nodes with a CNI plugin',
    rows: () => cellsOf(readRecord().rows, armsBy(true)),
  },
  {
    file: 'docs/design/host-network-comparison.md',
    heading: '## What it costs',
    rows: () => costsOf(readRecord().rows),
  },
]

/** Flag, default, meaning; none of those that are only accepted. */
const flagRows = (table: OptionTable = options): string[][] =>
  Object.entries(table)
    .filter(([, { group }]) => !group.startsWith('Accepted'))
    .map(([name, option]) => [
      quoted(`--${name}`),
      cell(defaultOf(option)),
      cell(`${option.help}${option.live ? liveMark : ''}${notYet(option)}`),
    ])

/** Those that are only accepted. */
const acceptedRows = (from: 'yurthub' | 'earlier releases'): string[][] =>
  Object.entries(options)
    .filter(([, { group }]) => group.startsWith(`Accepted from ${from}`))
    .map(([name, option]) => [quoted(`--${name}`), cell(defaultOf(option)), cell(option.help)])

/** Name, type, labels, meaning. */
const metricRows = (
  prefix: string,
  table: Readonly<Record<string, MetricRow>> = metricTable,
): string[][] =>
  Object.values(table)
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, type, labels, help }) => [quoted(name), type, labels.map(quoted).join(' '), help])

/** Id, usual level, what is found, why it matters. */
const ruleRows = (): string[][] =>
  rules.map(({ id, level, title, reason, document }) => [
    quoted(id),
    level,
    cell(title),
    `${cell(reason)} [Source](${document})`,
  ])

/** What Markdown would take for something else. */
const cell = (text: string): string => text.replaceAll(/[*|<]/g, String.raw`\$&`)

/**
 * Where in a document's lines the rows of the first table under the heading stand: from one line to
 * before another.
 */
export function rowLines(lines: readonly string[], heading: string): [from: number, to: number] {
  const under = lines.indexOf(heading)
  const head = lines.findIndex((line, i) => i > under && line.startsWith('|'))
  if (under < 0 || head < 0) throw new Error(`there is no table under ${heading}`)
  const end = lines.findIndex((line, i) => i > head && !line.startsWith('|'))
  return [head + 2, end < 0 ? lines.length : end]
}

/** The cells of the first table under the heading, trimmed. */
export function rowsUnder(markdown: string, heading: string): string[][] {
  const lines = markdown.split('\n')
  return lines.slice(...rowLines(lines, heading)).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((text) => text.trim()),
  )
}
