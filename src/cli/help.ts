import { programName, type Command } from './command.ts'
import { examplesOf } from './examples.ts'
import { flagHelp } from './flag-help.ts'

/** The help of a command for the words that were typed. */
export function helpOf(command: Command, [name = '', ...argv]: readonly string[]): string {
  const { usage, description, flags, flagsOf, afterFlags } = command
  const forms = usage.split('\n').map(programName)
  const parts = [
    `Usage: ${forms.join('\n       ')}\n`,
    description,
    flagsOf === undefined
      ? flags && flagHelp(flags, argv)
      : `The flags are those of nodehub ${flagsOf}: see nodehub ${flagsOf} --help.\n`,
    afterFlags,
    examplesOf(name, argv[0]),
  ]
  return parts.filter((part) => part !== undefined && part !== '').join('\n')
}
