import {
  defaultOf,
  groups,
  isAcceptedOnly,
  variableOf,
  type Option,
  type OptionTable,
} from '../config/option.ts'
import { options } from '../config/options.ts'
import { wrapped } from './wrapped.ts'

/**
 * The flags of a command, by default of `nodehub start`, under their headings. Those without effect
 * are there with `--all` in `argv`, and are counted without.
 */
export function flagHelp(argv: readonly string[] = [], table: OptionTable = options): string {
  const all = argv.includes('--all')
  const hidden = Object.values(table).filter(({ group }) => !all && isAcceptedOnly(group)).length
  const shown = groups
    .filter((group) => all || !isAcceptedOnly(group))
    .flatMap((group) => {
      const flags = Object.entries(table).filter(([, option]) => option.group === group)
      if (flags.length === 0) return []
      return [`${group}:\n${flags.map(([name, option]) => entry(name, option)).join('')}`]
    })
    .join('\n')
  return hidden === 0 ? shown : `${shown}\n--help --all lists ${hidden} flags without effect too.\n`
}

/** Marks settings that take effect while the hub runs. */
export const liveMark = ' (live)'

function entry(name: string, option: Option<unknown>): string {
  const shown = defaultOf(option)
  const value = option.type.bare === undefined ? ` ${option.type.placeholder}` : ''
  const standard = shown === '' || shown === 'required' ? '' : ` Default: ${shown}.`
  const foreign = isAcceptedOnly(option.group)
  const text = `${option.help}${standard}${option.live ? liveMark : ''}${foreign ? '' : notYet(option)}`
  return `  --${name}${value}\n${wrapped(text)}`
}

/** The part of a flag's help that says what is not implemented: for any value, or for some. */
export function notYet(option: Option<unknown>): string {
  const { type } = option
  const words = type.placeholder.includes('|') ? type.placeholder.split('|') : []
  const unimplemented = words.flatMap((word) => {
    const parsed = type.parse(word)
    const said = 'value' in parsed ? option.warningFor?.(parsed.value) : undefined
    return said === undefined ? [] : [{ word, said }]
  })
  // Some warnings are for values other than the default: `undefined` is one.
  const said = words.length > 0 ? unimplemented[0]?.said : option.warningFor?.(undefined)
  if (said === undefined) return ''
  const whose =
    unimplemented.length === words.length
      ? ''
      : ` (${unimplemented.map(({ word }) => word).join(', ')})`
  return ` Not yet${whose}: ${said.replace(/^has no effect yet in this release: /, '')}.`
}

/** The other sources of settings; printed after the flags. */
export const otherSources = `Each flag can also be given as an environment variable (${variableOf('server-addr')} for
--server-addr) or in the file of --config (server-addr: ...). A flag comes before the
environment, the environment before the file. What is marked (live) takes effect in a running hub
when the file changes; the rest at its next start.
`
