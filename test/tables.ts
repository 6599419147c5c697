/** The rows that README.md must have, made of the code's own tables. */
import { defaultOf } from '../src/cli/flag-help.ts'
import type { Option } from '../src/config/option.ts'
import { optionList } from '../src/config/options.ts'
import { metricTable } from '../src/metrics/table.ts'

const quoted = (text: string): string => (text === '' ? '' : `\`${text}\``)

/** Flag, default, meaning; `foreign` are those that are only accepted. */
export const flagRows = (foreign: boolean): string[][] =>
  optionList
    .filter(([, { group }]) => group.startsWith('Accepted') === foreign)
    .map(([name, option]) => [
      quoted(`--${name}`),
      cell(defaultOf(option)),
      cell(foreign ? option.help : `${option.help}${notYet(option)}`),
    ])

/** What an operator who gives the flag is told that it does not do: with any value, or with those words that it goes for. */
function notYet(option: Option<unknown>): string {
  const { type } = option
  const words = type.placeholder.includes('|') ? type.placeholder.split('|') : []
  const told = words.flatMap((word) => {
    const parsed = type.parse(word)
    const said = 'value' in parsed ? option.remark?.(parsed.value) : undefined
    return said === undefined ? [] : [{ word, said }]
  })
  // Where only values other than the default are remarked upon, `undefined` is one.
  const said = words.length > 0 ? told[0]?.said : option.remark?.(undefined)
  if (said === undefined) return ''
  const whose = told.length === words.length ? '' : ` (${told.map(({ word }) => word).join(', ')})`
  return ` Not yet${whose}: ${said.replace(/^has no effect yet in this release: /, '')}.`
}

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
