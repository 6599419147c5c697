import { comment, quoted, type CompletedCommand } from './completed-command.ts'

/** For zsh, in a folder of $fpath as _nodehub, or sourced after compinit. */
export const zshScript = (commands: readonly CompletedCommand[]): string => `#compdef nodehub
${comment}
_nodehub() {
  local -a commands
  if (( CURRENT == 2 )); then
    commands=(
${commands.map(({ name, summary }) => `      ${quoted(`${name}:${summary}`)}\n`).join('')}    )
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${commands.map(commandCase).join('')}  esac
}
if [[ $funcstack[1] == _nodehub ]]; then _nodehub "$@"; else compdef _nodehub nodehub; fi
`

function commandCase({ name, words, files, flags }: CompletedCommand): string {
  const specs = [
    ...flags.flatMap(({ name: flag, short, help, ...value }) => {
      const text = `[${help.replaceAll(/[[\]\\:]/g, '\\$&')}]${valueOf(value)}`
      const equals = value.takesValue ? '=' : ''
      return [
        `--${flag}${equals}${text}`,
        ...(short === undefined ? [] : [`-${short}${value.takesValue ? '+' : ''}${text}`]),
      ]
    }),
    '--help[print help]',
    ...(words.length > 0 ? [`1:what:(${words.join(' ')})`] : []),
    ...(files ? ['*:file:_files'] : []),
  ]
  return `    ${name})
      _arguments ${specs.map(quoted).join(' \\\n        ')} ;;\n`
}

function valueOf({
  takesValue,
  values,
  takesPath,
}: Pick<CompletedCommand['flags'][number], 'takesValue' | 'values' | 'takesPath'>): string {
  if (!takesValue) return ''
  if (takesPath) return ':path:_files'
  return values.length > 0 ? `:value:(${values.join(' ')})` : ':value: '
}
