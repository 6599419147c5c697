import { join } from 'node:path'
import { processSources } from '../config/process.ts'
import { defaultRootDir } from '../config/root-dir.ts'
import { messageOf } from '../config/settings.ts'
import { boolean, objectName, optional } from '../config/value.ts'
import { backUp } from '../node/backup/backup.ts'
import { commandFlag, helpOfFlags, readFlags, strayWords } from './command-flags.ts'
import { refuse, type Command } from './command.ts'
import { absolutePath } from './join-flags.ts'
import { operatorFile } from './operator-file.ts'

/** Where a hub has its state, for backup and restore. */
export const stateFlags = {
  'root-dir': commandFlag({
    type: absolutePath,
    default: defaultRootDir,
    help: "The hub's --root-dir.",
  }),
  'disk-cache-path': commandFlag({
    type: optional(absolutePath),
    default: undefined,
    defaultShown: 'cache under --root-dir',
    help: "The hub's --disk-cache-path.",
  }),
  'node-name': commandFlag({
    type: optional(objectName),
    default: undefined,
    defaultShown: "$NODE_NAME, else the host's name",
    help: 'The name of the node.',
  }),
}

/** The flags of `nodehub backup`. */
export const backupFlags = {
  'without-key': commandFlag({
    type: boolean,
    default: false,
    help: 'Leave out the key that seals Secrets and tokens in the store. The node needs the key that it has then.',
  }),
  ...stateFlags,
}

interface StateValues {
  readonly 'root-dir': string
  readonly 'disk-cache-path': string | undefined
  readonly 'node-name': string | undefined
}

/** Where the state is, and which node this is. */
export function stateOf(values: StateValues) {
  const { env, hostname } = processSources([])
  return {
    rootDir: values['root-dir'],
    cachePath: values['disk-cache-path'] ?? join(values['root-dir'], 'cache'),
    node: values['node-name'] ?? env['NODE_NAME'] ?? hostname.toLowerCase(),
  }
}

export const backup: Command = {
  help: () => `Usage: nodehub backup FILE [FLAG...]

Writes the state of this node's hub into FILE, a tar archive that only its owner may read: keys and
certificates, what filters and tokens need, and the store as of one moment. The hub may run. Keep
the archive as you would keep the keys in it.

Exit codes: 0, the archive is written; 1, it is not, and FILE is as it was; 2, not understood.

${helpOfFlags(backupFlags)}`,
  completions: () => ({ flags: backupFlags, files: true }),
  async run(argv, terminal) {
    const { values, words, mistakes } = readFlags(backupFlags, argv)
    const [file, ...stray] = words
    const wrong = [...mistakes, ...strayWords(stray)]
    if (file === undefined) wrong.push('FILE is missing, where the archive goes')
    if (file === undefined || wrong.length > 0) return refuse(terminal, 'backup', wrong)
    process.umask(0o077)
    try {
      const withoutKey = values['without-key']
      const archive = operatorFile(file)
      const { node, files, schema } = await backUp(archive, {
        ...stateOf(values),
        withoutKey,
        // SQLite resolves links by their text, and would not come out of the container.
        ...(archive !== file && { copy: join(values['root-dir'], 'backup.new') }),
      })
      const store = schema === undefined ? 'no store' : 'the store'
      const bytes = files.reduce((sum, { size }) => sum + size, 0)
      terminal.out(
        `wrote ${file}: ${files.length} files of ${node} with ${store}, ${bytes} bytes\n`,
      )
      return 0
    } catch (cause) {
      terminal.err(`nodehub backup: ${file} was not written: ${messageOf(cause)}\n`)
      return 1
    }
  },
}
