import { stringify } from 'yaml'
import { option } from '../../config/option.ts'
import { oneOf } from '../../config/value.ts'

/** How a report is printed. */
export type OutputFormat = 'table' | 'json' | 'yaml'

export const outputFlag = option({
  type: oneOf(['table', 'json', 'yaml']),
  default: 'table',
  help: 'For people or for programs.',
  short: 'o',
})

/** A report in a format; `table` makes the one for people. */
export function printed(report: unknown, format: OutputFormat, table: () => string): string {
  switch (format) {
    case 'table':
      return table()
    case 'json':
      return `${JSON.stringify(report, undefined, 2)}\n`
    case 'yaml':
      return stringify(report, { lineWidth: 0 })
  }
}

/** Parts of a report for people, with an empty line between them; without the empty ones. */
export const paragraphs = (...parts: readonly string[]): string =>
  parts.filter((part) => part !== '').join('\n')
