/** The rows that README.md must have, made of the code's own tables. */
import { defaultOf } from '../src/cli/flag-help.ts'
import { optionList } from '../src/config/options.ts'
import { metricTable } from '../src/metrics/table.ts'

const quoted = (text: string): string => (text === '' ? '' : `\`${text}\``)

/** Flag, default, meaning; `foreign` are those that are only accepted. */
export const flagRows = (foreign: boolean): string[][] =>
  optionList
    .filter(([, { group }]) => group.startsWith('Accepted') === foreign)
    .map(([name, option]) => [quoted(`--${name}`), cell(defaultOf(option)), cell(option.help)])

/** Name, type, labels, meaning. */
export const metricRows = (): string[][] =>
  Object.values(metricTable).map(({ name, type, labels, help }) => [
    quoted(name),
    type,
    labels.map(quoted).join(' '),
    help,
  ])

/** What Markdown would take for something else. */
const cell = (text: string): string => text.replaceAll(/[*|<]/g, String.raw`\$&`)

/** The rows of the Markdown table under `heading` whose first cell matches, trimmed. */
export function rowsIn(markdown: string, first: RegExp): string[][] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((text) => text.trim()),
    )
    .filter(([name = '']) => first.test(name))
}
