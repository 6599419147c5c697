import { comment, type CompletedCommand } from './completed-command.ts'

/** For fish, in a folder of $fish_complete_path as nodehub.fish, or sourced. */
export const fishScript = (commands: readonly CompletedCommand[]): string => `${comment}
complete -c nodehub -e
complete -c nodehub -f
${commands
  .map(({ name, summary }) => `${line('__fish_use_subcommand', ['-a', name], summary)}\n`)
  .join('')}${commands.flatMap(ofCommand).join('\n')}
`

const line = (condition: string, args: readonly string[], help: string): string =>
  `complete -c nodehub -n ${inFish(condition)} ${args.join(' ')}${help === '' ? '' : ` -d ${inFish(help)}`}`

function ofCommand({ name, words, files, flags }: CompletedCommand): readonly string[] {
  const here = `__fish_seen_subcommand_from ${name}`
  const first = `${here}; and test (count (commandline -opc)) -eq 2`
  return [
    ...(words.length > 0 ? [line(first, ['-a', inFish(words.join(' '))], '')] : []),
    ...(files ? [line(here, ['-F'], '')] : []),
    ...flags.map(({ name: flag, short, help, takesValue, values, takesPath }) =>
      line(
        here,
        [
          '-l',
          flag,
          ...(short === undefined ? [] : ['-s', short]),
          ...(takesValue ? [takesPath ? '-rF' : '-x'] : []),
          ...(takesValue && values.length > 0 ? ['-a', inFish(values.join(' '))] : []),
        ],
        help,
      ),
    ),
    line(here, ['-l', 'help'], 'print help'),
  ]
}

/** The text as one word of fish, whose quotes know escapes. */
const inFish = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`
