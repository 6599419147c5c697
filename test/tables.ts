/** The rows that documents must have, made of the code's own tables. */
import { footprintRows } from '../bench/report/footprint.ts'
import { readResults } from '../bench/report/results.ts'
import { readRecord } from '../bench/host-network/record.ts'
import { armsBy, cellsOf, costsOf } from '../bench/host-network/table.ts'
import { reference } from '../packaging/reference.ts'
import { programName } from '../src/cli/command.ts'
import { flagText, flagUsage } from '../src/cli/flag-help.ts'
import { groups, isAcceptedOnly, type OptionTable } from '../src/config/option.ts'
import { options } from '../src/config/options.ts'
import { clusterMetricTable } from '../src/metrics/cluster-table.ts'
import { rules } from '../src/node/lint/rules.ts'
import { metricTable, type MetricRow } from '../src/metrics/table.ts'

const quoted = (text: string): string => (text === '' ? '' : `\`${text}\``)

const sections = await reference()

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

/** A list that is made of code, between `<!-- generated: NAME -->` and `<!-- end -->`. */
interface DocumentList {
  readonly file: string
  readonly name: string
  readonly lines: () => string[]
}

/** Every list that is made of code; `test/write-tables.ts` writes them. */
export const lists: readonly DocumentList[] = [
  { file: 'docs/configuration.md', name: 'flags', lines: () => groupedFlags(options) },
  { file: 'docs/configuration.md', name: 'of yurthub', lines: () => acceptedFlags('yurthub') },
  {
    file: 'docs/configuration.md',
    name: 'of earlier releases',
    lines: () => acceptedFlags('earlier releases'),
  },
  { file: 'docs/cli.md', name: 'commands', lines: () => commandLines() },
  { file: 'docs/cli.md', name: 'rules', lines: () => ruleLines() },
  { file: 'docs/metrics.md', name: 'nodehub', lines: () => metricLines('nodehub_') },
  { file: 'docs/metrics.md', name: 'yurthub', lines: () => metricLines('node_yurthub_') },
  {
    file: 'docs/metrics.md',
    name: 'cluster',
    lines: () => metricLines('nodehub_cluster_', clusterMetricTable),
  },
]

/** Name and meaning; none of those that are only accepted. */
const flagLines = (table: OptionTable): string[] =>
  Object.entries(table)
    .filter(([, { group }]) => !isAcceptedOnly(group))
    .map(([name, option]) => `- ${quoted(flagUsage(name, option))}: ${inText(flagText(option))}`)

/** Those of the command, by their groups. */
const groupedFlags = (table: OptionTable): string[] =>
  [...Map.groupBy(Object.entries(table), ([, { group }]) => group)]
    .toSorted(
      ([a], [b]) => groups.findIndex((each) => each === a) - groups.findIndex((each) => each === b),
    )
    .map(([group, flags]) => ({ group, lines: flagLines(Object.fromEntries(flags)) }))
    .filter(({ lines }) => lines.length > 0)
    .flatMap(({ group, lines }, i) => [
      ...(i > 0 ? [''] : []),
      ...(group === undefined ? [] : [`### ${group}`, '']),
      ...lines,
    ])

/** Flags that the section of another command has. */
const otherFlags = (owner: string, flags: readonly string[]): string =>
  flags.length === Object.keys(sections.find(({ name }) => name === owner)?.own ?? {}).length
    ? `All flags of ${quoted(owner)}`
    : `As for ${quoted(owner)}: ${flags.map((flag) => quoted(`--${flag}`)).join(', ')}`

/** The commands that have flags of their own, but for `start`, which has a page. */
const commandLines = (): string[] =>
  sections
    .filter(({ name, own, others, flagsOf }) => {
      const isReport = name.startsWith('inspect ') && Object.keys(own).length === 0
      return (
        ![name, flagsOf].includes('start') && !isReport && Object.keys(own).length + others.size > 0
      )
    })
    .flatMap(({ name, usage, own, others }) => [
      `## ${name}`,
      '',
      '```text',
      ...usage.split('\n').map(programName),
      '```',
      '',
      ...groupedFlags(own),
      ...[...others].map(([owner, flags]) => `- ${otherFlags(owner, flags)}.`),
      '',
    ])

/** The names of those that are only accepted. */
const acceptedFlags = (from: 'yurthub' | 'earlier releases'): string[] => [
  Object.entries(options)
    .filter(([, { group }]) => group?.startsWith(`Accepted from ${from}`))
    .map(([name]) => quoted(`--${name}`))
    .join(', '),
]

/** Name, type, labels, meaning. */
const metricLines = (
  prefix: string,
  table: Readonly<Record<string, MetricRow>> = metricTable,
): string[] =>
  Object.values(table)
    .filter(({ name }) => name.startsWith(prefix))
    .map(
      ({ name, type, labels, help }) =>
        `- ${quoted(name)} (${[type, ...labels.map(quoted)].join(', ')}): ${inText(help)}`,
    )

/** Id, usual level, what is found, with its source. */
const ruleLines = (): string[] =>
  rules.map(
    ({ id, level, title, document }) =>
      `- ${quoted(id)} (${level}): ${inText(title)}. [Source](${document})`,
  )

/** What Markdown would take for something else. */
const inText = (text: string): string => text.replaceAll(/[*<]/g, String.raw`\$&`)

const marksOf = (name: string): [start: string, end: string] => [
  `<!-- generated: ${name} -->\n`,
  '\n<!-- end -->',
]

/** The list of this name on a page. */
export function listIn(page: string, name: string): string {
  const [start, end] = marksOf(name)
  const [, after] = page.split(start, 2)
  if (after === undefined) throw new Error(`there is no list ${name}`)
  return after.slice(0, after.indexOf(end))
}

/** `page` with these lines as the list of this name. */
export function withList(page: string, name: string, lines: readonly string[]): string {
  const [start, end] = marksOf(name)
  return page.replace(start + listIn(page, name) + end, () => start + lines.join('\n') + end)
}

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
