import { groups, variableOf, type Option } from '../config/option.ts'
import { optionList } from '../config/options.ts'

/** The flags of `nodehub start` under their headings. */
export function flagHelp(): string {
  return groups
    .map((group) => {
      const flags = optionList.filter(([, option]) => option.group === group)
      return `${group}:\n${flags.map(([name, option]) => entry(name, option)).join('')}`
    })
    .join('\n')
}

function entry(name: string, option: Option<unknown>): string {
  const shown = defaultOf(option)
  const value = option.type.bare === undefined ? ` ${option.type.placeholder}` : ''
  const text = `${option.help}${shown === '' || shown === 'required' ? '' : ` Default: ${shown}.`}`
  return `  --${name}${value}\n${wrapped(text, 86, '        ')}`
}

/** A default as one would write it; '' where there is none. */
export function defaultOf({ default: value, defaultShown }: Option<unknown>): string {
  if (defaultShown !== undefined) return defaultShown
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

function wrapped(text: string, width: number, indent: string): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + word.length >= width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line) => `${indent}${line}\n`).join('')
}

/** How the flags can be given otherwise; follows their list. */
export const elsewhere = `Each flag can also be given as an environment variable (${variableOf('server-addr')} for
--server-addr) or in the file of --config (server-addr: ...). A flag comes before the
environment, the environment before the file.
`
