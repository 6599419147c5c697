import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { refuse, type Command } from './command.ts'

/** What this is and what it runs on, a line each. */
export const version: Command = {
  help: () => `Usage: nodehub version

Prints the versions of nodehub, of Node and of SQLite.
`,
  async run(argv, terminal) {
    if (argv.length > 0) return refuse(terminal, 'version', ['it takes no words behind it'])
    terminal.out(versionText())
    return 0
  },
}

export const versionText = (): string =>
  `nodehub ${ownVersion()}\nnode ${process.versions.node}\nsqlite ${process.versions['sqlite'] ?? 'absent'}\n`

/** From the package's own package.json, which stands above the sources and above what was built of them. */
export function ownVersion(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) return 'unknown'
    folder = parent
  }
  const content: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const found = typeof content === 'object' && content && 'version' in content
  return found ? String(content.version) : 'unknown'
}
