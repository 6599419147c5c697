import { isAcceptedOnly, type OptionTable } from '../../config/option.ts'
import { refuse, type Command, type CommandEntry } from '../command.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import type { CompletedCommand } from './completed-command.ts'
import { zshScript } from './zsh.ts'

const scripts: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

/** The command for a table of commands, which is where its scripts come from. */
export const completionOf = (entries: Readonly<Record<string, CommandEntry>>): Command => ({
  usage: 'completion bash|zsh|fish',
  description: `Prints the script with which a shell completes the commands, flags and values of nodehub. Packages
install it. Elsewhere, for the shell that runs:

  bash   source <(nodehub completion bash)
  zsh    source <(nodehub completion zsh), after compinit
  fish   nodehub completion fish | source
`,
  words: Object.keys(scripts),
  async run([shell, ...rest], terminal) {
    const script = shell !== undefined && Object.hasOwn(scripts, shell) && scripts[shell]
    if (!script || rest.length > 0)
      return refuse(terminal, 'completion', [`it needs one of ${Object.keys(scripts).join(', ')}`])
    const commands = Object.entries(entries).map(async ([name, { summary, load }]) => {
      const command = await load([])
      const { subcommands = [], words = subcommands, files = false } = command
      const all = await Promise.all(subcommands.map((word) => load([word])))
      const flags: OptionTable = Object.assign({}, ...[command, ...all].map((one) => one.flags))
      return {
        name,
        summary,
        words,
        files,
        flags: Object.entries(flags)
          .filter(([, { group }]) => !isAcceptedOnly(group))
          .map(([flag, { type, help, short }]) => ({
            name: flag,
            short,
            help: firstSentence(help),
            takesValue: type.bare === undefined,
            values: type.placeholder.split('|').filter((word) => /^[a-z0-9][\w.-]*$/.test(word)),
            takesPath: /^(?:FILE|FOLDER|PATH|\/PATH)$/.test(type.placeholder),
          })),
      }
    })
    terminal.out(script(await Promise.all(commands)))
    return 0
  },
})

const firstSentence = (help: string): string =>
  help.replace(/\.(?:\s[\s\S]*)?$/, '').replaceAll(/\s+/g, ' ')
