import { comment, type CompletedCommand } from './completed-command.ts'

/**
 * For bash 4.4 or later, without the package bash-completion. Bash splits words at `=`, also in the
 * middle of --flag=value.
 */
export const bashScript = (commands: readonly CompletedCommand[]): string => `${comment}
_nodehub() {
  local cur=\${COMP_WORDS[COMP_CWORD]} flag=\${COMP_WORDS[COMP_CWORD-1]} words='' values='' kind=''
  if [[ $cur == = ]]; then cur=''
  elif [[ $flag == = ]]; then flag=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W '${commands.map(({ name }) => name).join(' ')} help' -- "$cur"))
    return
  fi
  case "\${COMP_WORDS[1]} $flag" in
${commands.flatMap(valueCases).join('')}  esac
  if [[ $kind == path ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  elif [[ $kind == value ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
    return
  fi
  case \${COMP_WORDS[1]} in
${commands.map(commandCase).join('')}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
    if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
  elif [[ $kind == files ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif (( COMP_CWORD == 2 )); then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}
complete -F _nodehub nodehub
`

const valueCases = ({ name, flags }: CompletedCommand): readonly string[] =>
  flags
    .filter(({ takesValue }) => takesValue)
    .map(({ name: flag, short, values, takesPath }) => {
      const patterns = [`--${flag}`, ...(short === undefined ? [] : [`-${short}`])]
      const pattern = patterns.map((each) => `'${name} ${each}'`).join('|')
      const kind = takesPath ? 'path' : 'value'
      return `    ${pattern}) kind=${kind} values='${values.join(' ')}' ;;\n`
    })

function commandCase({ name, words, files, flags }: CompletedCommand): string {
  const names = flags.map((flag) => `--${flag.name}${flag.takesValue ? '=' : ''}`)
  const kind = files ? ' kind=files' : ''
  return `    ${name}) words='${words.join(' ')}' values='${[...names, '--help'].join(' ')}'${kind} ;;\n`
}
