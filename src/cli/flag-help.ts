import {
  defaultOf,
  groups,
  isAcceptedOnly,
  variableOf,
  type Option,
  type OptionTable,
} from '../config/option.ts'
import { wrapped } from './wrapped.ts'

/**
 * The flags of a command, under their headings. Those without effect are there with `--all` in
 * `argv`, and are counted without.
 */
export function flagHelp(table: OptionTable, argv: readonly string[]): string {
  const all = argv.includes('--all')
  const hidden = Object.values(table).filter(({ group }) => !all && isAcceptedOnly(group)).length
  const shown = [undefined, ...groups]
    .filter((group) => all || !isAcceptedOnly(group))
    .flatMap((group) => {
      const flags = Object.entries(table).filter(([, option]) => option.group === group)
      if (flags.length === 0) return []
      const heading = group === undefined ? '' : `${group}:\n`
      return [`${heading}${flags.map(([name, option]) => entry(name, option)).join('')}`]
    })
    .join('\n')
  if (hidden === 0) return shown
  const flags = hidden === 1 ? 'one flag' : `${hidden} flags`
  return `${shown}\n--help --all also lists ${flags} without effect.\n`
}

/** Marks settings that take effect while the hub runs. */
const liveMark = ' (live)'

const entry = (name: string, option: Option<unknown>): string =>
  `  ${flagUsage(name, option)}\n${wrapped(flagText(option))}`

/** The flag as it is typed, with its letter and a word for its value. */
export function flagUsage(name: string, { type, short }: Option<unknown>): string {
  const letter = short === undefined ? '' : `-${short}, `
  return `${letter}--${name}${type.bare === undefined ? ` ${type.placeholder}` : ''}`
}

/** What the flag means, with its default. */
export function flagText(option: Option<unknown>): string {
  const usual = defaultOf(option)
  const isPlain = ['', 'required', 'false'].includes(usual)
  return `${option.help}${isPlain ? '' : ` Default: ${usual}.`}${option.live ? liveMark : ''}`
}

/** The other sources of settings; printed after the flags. */
export const otherSources = `Each flag can also be given as an environment variable (${variableOf('server-addr')} for
--server-addr) or in the file of --config (server-addr: ...). Flags take precedence over the
environment, and the environment over the file. Settings marked (live) take effect in a running hub
when the file changes, the others at its next start.
`
