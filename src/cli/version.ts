import { ownVersion } from '../base/own-version.ts'
import { refuse, type Command } from './command.ts'

/** The versions of the hub and its runtime, a line each. */
export const version: Command = {
  usage: 'version',
  description: 'Prints the versions of nodehub and of Node.\n',
  async run(argv, terminal) {
    if (argv.length > 0) return refuse(terminal, 'version', ['it takes no arguments'])
    terminal.out(versionText())
    return 0
  },
}

export const versionText = (): string => `nodehub ${ownVersion()}\nnode ${process.versions.node}\n`
