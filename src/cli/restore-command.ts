import { messageOf } from '../config/settings.ts'
import { boolean } from '../config/value.ts'
import { restore } from '../node/backup/restore.ts'
import { stateFlags, stateOf } from './backup-command.ts'
import { commandFlag, helpOfFlags, readFlags, strayWords } from './command-flags.ts'
import { refuse, type Command } from './command.ts'
import { operatorFile } from './operator-file.ts'

/** The flags of `nodehub restore`. */
export const restoreFlags = {
  replace: commandFlag({
    type: boolean,
    default: false,
    help: 'Replace the state that a hub has here.',
  }),
  force: commandFlag({
    type: boolean,
    default: false,
    help: "Take another node's archive, with that node's certificates.",
  }),
  ...stateFlags,
}

export const restoreCommand: Command = {
  help: () => `Usage: nodehub restore FILE [FLAG...]

Makes the state in FILE, an archive of nodehub backup, that of this node's hub, which must be
stopped. The archive is checked whole before anything is replaced; after an interruption the state
is the former one, or the restored one once the hub starts. Ages of what is recorded stay: offline,
the hub says that its answers are as old as they are. The files of nodehub join are not part of it.

Exit codes: 0, restored; 1, not, and all is as it was; 2, not understood.

${helpOfFlags(restoreFlags)}`,
  completions: () => ({ flags: restoreFlags, files: true }),
  async run(argv, terminal) {
    const { values, words, mistakes } = readFlags(restoreFlags, argv)
    const [file, ...stray] = words
    const wrong = [...mistakes, ...strayWords(stray)]
    if (file === undefined) wrong.push('FILE is missing, the archive')
    if (file === undefined || wrong.length > 0) return refuse(terminal, 'restore', wrong)
    process.umask(0o077)
    try {
      const { force, replace } = values
      const { node, madeAt, release } = await restore(operatorFile(file), {
        ...stateOf(values),
        force,
        replace,
      })
      terminal.out(`restored the state of ${node} as of ${madeAt}, written by nodehub ${release}\n`)
      return 0
    } catch (cause) {
      terminal.err(`nodehub restore: ${file} was not restored: ${messageOf(cause)}\n`)
      return 1
    }
  },
}
